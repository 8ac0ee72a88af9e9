#include "layers/net/cut_points.h"

#include <algorithm>

#include "core/check.h"
#include "layers/net.pb.h"
#include "layers/net/graph.h"
#include "layers/net/stage_memory.h"

namespace ringtail {

std::vector<int> NodesToCutAfter(const Graph& graph) {
  // By node: the last one that reads its blob. (Every blob but the loss's is read.)
  std::vector<int> last_reader(graph.size(), -1);
  int last_reader_of_images = -1;
  for (int i = 0; i < graph.size(); ++i) {
    for (const int input : graph.nodes()[i].inputs) {
      (input == kImagesInput ? last_reader_of_images : last_reader[input]) = i;
    }
  }
  // After node i its own blob crosses. Another one does if it is read later.
  std::vector<int> nodes;
  int others_until = last_reader_of_images;
  for (int i = 0; i + 1 < graph.size(); ++i) {
    if (others_until <= i) nodes.push_back(i);
    others_until = std::max(others_until, last_reader[i]);
  }
  return nodes;
}

bool PartsBatchNorm(const Graph& graph, int node) {
  const std::vector<Node>& nodes = graph.nodes();
  if (nodes[node].uses != 1) return false;
  if (nodes[node].config->has_batch_norm()) return true;
  return std::any_of(nodes.begin() + node + 1, nodes.end(), [&](const Node& reader) {
    return reader.inputs[0] == node && reader.config->has_batch_norm();
  });
}

std::vector<CutPoint> FindCutPoints(const Model& model, const Net& net) {
  const Graph& graph = model.graph();
  RT_CHECK(static_cast<int>(net.layers().size()) == graph.size(), "the net is one of the model");
  std::vector<CutPoint> points;
  for (const int node : NodesToCutAfter(graph)) {
    points.push_back({.node = node,
                      .blob = net.layers()[node].dst,
                      .has_gradient = net.needs()[node].learns,
                      .parts_batch_norm = PartsBatchNorm(graph, node)});
  }
  return points;
}

NetSegment DescribeSegment(const Model& model, const Net& net, int first, int last) {
  const NetOptions& options = net.options();
  NetSegment segment{.first = first, .last = last};
  for (int i = first; i <= last; ++i) {
    for (const Parameter* parameter : model.parameters(i)) {
      const bool trains = !parameter->is_buffer && !parameter->is_fixed;
      (trains ? segment.trained_bytes : segment.fixed_bytes) +=
          parameter->elements * static_cast<int64_t>(sizeof(float));
    }
  }
  segment.kept_bytes =
      PlanStageMemory(
          net.needs(), first, last,
          {.training = options.training, .recompute = options.recompute, .defer = options.defer})
          .kept_bytes;
  return segment;
}

}  // namespace ringtail
