#include "apps/emulator/clock/coded_layers.h"

#include <utility>

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

LayerCoding MeasureCodedLayers(const CodedKind& kind, std::span<const Parameter> parameters) {
  LayerCoding sum;
  const std::vector<LayerScheme> schemes = ChooseSchemes(kind.config, parameters, kind.samples);
  for (size_t i = 0; i < schemes.size(); ++i) {
    const LayerCoding coding = MeasureCoding(schemes[i], GradientShapeOf(parameters[i].spec));
    sum.encode_seconds += coding.encode_seconds;
    sum.decode_seconds += coding.decode_seconds;
  }
  return sum;
}

}  // namespace ringtail
