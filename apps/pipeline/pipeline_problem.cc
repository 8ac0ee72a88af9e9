#include "apps/pipeline/pipeline_problem.h"

#include <memory>
#include <numeric>

#include "core/check.h"
#include "core/parameter.h"
#include "layers/net/cut_points.h"
#include "layers/net/graph.h"
#include "optim/optimizer.h"

namespace ringtail {
namespace {

double Sum(const std::vector<double>& values, int first, int last) {
  return std::accumulate(values.begin() + first, values.begin() + last + 1, 0.0);
}

}  // namespace

NodeSeconds FlopsAsSeconds(const Net& net) {
  NodeSeconds seconds;
  for (const LayerInfo& layer : net.layers()) {
    seconds.forward.push_back(layer.forward_flops);
    seconds.backward.push_back(layer.backward_flops);
  }
  return seconds;
}

std::vector<int> NetPipeline::LastNodes(const PipelinePartition& partition) const {
  std::vector<int> nodes;
  for (const int layer : partition.last_layers) nodes.push_back(last_nodes[layer]);
  return nodes;
}

NetPipeline MakeNetPipeline(const Model& model, const Net& net, const NodeSeconds& seconds,
                            const PipelineShape& shape, int copies) {
  const auto nodes = static_cast<int>(net.layers().size());
  RT_CHECK(static_cast<int>(seconds.forward.size()) == nodes &&
               static_cast<int>(seconds.backward.size()) == nodes,
           "every node has its seconds");
  NetPipeline pipeline;
  pipeline.problem.shape = shape;
  int first = 0;
  const auto add = [&](int last, const BoundaryCost& crossing) {
    const NetSegment segment = DescribeSegment(model, net, first, last);
    pipeline.problem.layers.push_back(
        {.name = model.graph().nodes()[last].name,
         .forward_s = Sum(seconds.forward, first, last),
         .backward_s = Sum(seconds.backward, first, last),
         .fixed_bytes = WeightBytes(segment.trained_bytes, segment.fixed_bytes, copies),
         .kept_bytes = segment.kept_bytes,
         .may_cut_after = true,
         .crossing = crossing});
    pipeline.last_nodes.push_back(last);
    first = last + 1;
  };
  for (const CutPoint& point : FindCutPoints(model, net)) {
    if (point.parts_batch_norm) continue;
    add(point.node, {.activation_bytes = point.bytes(),
                     .gradient_bytes = point.has_gradient ? point.bytes() : 0});
  }
  add(nodes - 1, {});
  return pipeline;
}

// Of a network of one weight: every rule keeps blocks in the layout of the weights.
StatusOr<int> CountWeightCopies(const OptimConfig& config, int64_t parts) {
  const ParameterSpec weight{
      .name = "weight", .shape = {1, 1}, .kind = ParameterKind::kLinearWeight};
  RT_ASSIGN_OR_RETURN(const auto arena, ParameterArena::Create({weight}, {}));
  RT_ASSIGN_OR_RETURN(const auto optimizer, Optimizer::Create(config, arena.get()));
  return static_cast<int>(optimizer->state().size()) + (config.ema_decay() > 0 ? 1 : 0) +
         (parts > 1 ? 1 : 0);
}

int64_t WeightBytes(int64_t trained_bytes, int64_t fixed_bytes, int copies) {
  constexpr int kWeightsAndGradients = 2;
  return (kWeightsAndGradients + copies) * trained_bytes + fixed_bytes;
}

}  // namespace ringtail
