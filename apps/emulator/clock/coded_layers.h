// CodedLayers: how each layer travels, its gradient in a step (dist.compression) or its difference
// at the end of a round (dist.local.compression), as GradientCompression
// (apps/trainer/update/gradient_compression.h) decides it for real ranks.
//
//   scheme of a layer ──> what each route costs on the virtual network ──> its route
//   coding seconds    ──┘  (the script's, in proportion to the layers' elements)
//
// ChooseCodedLayers measures nothing, so that the same script gives the same routes.
// Thread-safety: functions without state; a value.
#ifndef RINGTAIL_APPS_EMULATOR_CLOCK_CODED_LAYERS_H_
#define RINGTAIL_APPS_EMULATOR_CLOCK_CODED_LAYERS_H_

#include <span>
#include <vector>

#include "apps/emulator/script.pb.h"
#include "core/parameter.h"
#include "dist/collectives/plan_cost.h"
#include "dist/collectives/topology.h"
#include "dist/compression/layer_costs.h"
#include "dist/compression/layer_scheme.h"

namespace ringtail {

struct CodedLayers {
  // By parameter; dense where the route is.
  std::vector<LayerScheme> schemes;
  std::vector<LayerRoute> routes;
  std::vector<LayerCoding> coding;

  // For a CompressedReducer, whose sketches have state of their own.
  std::vector<CompressedLayer> Take() &&;
};

// What is compressed, and of how many samples it is a sum: images of all workers in a step. A
// difference is one sample, however many images have made it.
struct CodedKind {
  CompressionConfig config;
  double samples = 1;
};

// `topology`: of the workers that exchange.
CodedLayers ChooseCodedLayers(const CodedKind& kind, std::span<const Parameter> parameters,
                              const ComputeScript& compute, const Topology& topology,
                              const NetworkModel& network);

// All travel as floats.
CodedLayers DenseLayers(size_t count);

// What a script that does not say has for encode_ms and decode_ms: processor time, since a limit on
// the processor mostly does not stop so short a work, and then for long. Takes some times as long.
LayerCoding MeasureCodedLayers(const CodedKind& kind, const ParameterArena& arena);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_CLOCK_CODED_LAYERS_H_
