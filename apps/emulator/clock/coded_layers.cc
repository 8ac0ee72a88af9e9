#include "apps/emulator/clock/coded_layers.h"

#include <numeric>
#include <utility>

#include "apps/plan/measure_scheme.h"
#include "core/units.h"
#include "dist/compression/scheme_choice.h"

namespace ringtail {

std::vector<CompressedLayer> CodedLayers::Take() && {
  std::vector<CompressedLayer> layers;
  for (size_t i = 0; i < schemes.size(); ++i) {
    layers.push_back(
        {.scheme = std::move(schemes[i]), .sharded = routes[i] == LayerRoute::kSharded});
  }
  return layers;
}

CodedLayers ChooseCodedLayers(const CodedKind& kind, std::span<const Parameter> parameters,
                              const ComputeScript& compute, const Topology& topology,
                              const NetworkModel& network) {
  CodedLayers layers{.schemes = ChooseSchemes(kind.config, parameters, kind.samples)};
  double coded = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!layers.schemes[i].dense()) coded += static_cast<double>(parameters[i].elements);
  }
  const double seconds_per_byte = SecondsPerByte(network, topology);
  for (size_t i = 0; i < parameters.size(); ++i) {
    LayerScheme& scheme = layers.schemes[i];
    LayerCoding coding;
    LayerRoute route = LayerRoute::kDense;
    if (!scheme.dense()) {
      const double share = static_cast<double>(parameters[i].elements) / coded * kSecondsPerMs;
      coding = {.encode_seconds = share * compute.encode_ms(),
                .decode_seconds = share * compute.decode_ms()};
      route = ChooseRoute(kind.config, scheme,
                          CostsOf(scheme, GradientShapeOf(parameters[i].spec), coding,
                                  topology.world(), seconds_per_byte));
    }
    if (route == LayerRoute::kDense) scheme = LayerScheme();
    layers.routes.push_back(route);
    layers.coding.push_back(coding);
  }
  return layers;
}

CodedLayers DenseLayers(size_t count) {
  return {.schemes = std::vector<LayerScheme>(count),
          .routes = std::vector<LayerRoute>(count, LayerRoute::kDense),
          .coding = std::vector<LayerCoding>(count)};
}

// As a plan measures it; clearing the sum, which a rank does once, is left out.
LayerCoding MeasureCodedLayers(const CodedKind& kind, const ParameterArena& arena) {
  const SchemeFacts facts = MeasureScheme("coded", kind.config, arena);
  return {.encode_seconds = std::accumulate(facts.encode_s().begin(), facts.encode_s().end(), 0.0),
          .decode_seconds = std::accumulate(facts.decode_s().begin(), facts.decode_s().end(), 0.0)};
}

}  // namespace ringtail
