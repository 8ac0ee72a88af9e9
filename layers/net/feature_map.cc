#include "layers/net/feature_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "core/config/nearest_name.h"
#include "layers/net.pb.h"

namespace ringtail {
namespace {

constexpr char kNoMap[] =
    "the network has no feature map, an output of a convolution with more than one pixel";

bool IsPooling(const LayerConfig& layer) {
  return layer.has_max_pool() || layer.has_average_pool() || layer.has_global_average_pool() ||
         layer.has_adaptive_average_pool();
}

StatusOr<int> LastFeatureMap(const Graph& graph, std::span<const ShapeInfo> shapes) {
  int last = -1;
  std::vector<bool> is_convolved(graph.size());
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes()[i];
    is_convolved[i] = node.config->has_convolution() ||
                      std::any_of(node.inputs.begin(), node.inputs.end(), [&](int input) {
                        return input != kImagesInput && is_convolved[input];
                      });
    const bool is_map = shapes[i].dst.plane() > 1 && is_convolved[i];
    if (is_map && !IsPooling(*node.config)) last = i;
  }
  if (last < 0) return NotFound(kNoMap);
  return last;
}

// The node called `layer`, or the last of the composite called so.
StatusOr<int> NodeOf(const Graph& graph, const std::string& layer) {
  std::vector<std::string> names;
  for (int i = graph.size() - 1; i >= 0; --i) {
    const std::string& name = graph.nodes()[i].name;
    if (name == layer || name.starts_with(layer + ".")) return i;
    names.push_back(name);
  }
  const std::string nearest = NearestName(layer, names);
  return InvalidArgument(
      fmt::format("'{}' is no layer with an output of its own, as `summary` lists them{}", layer,
                  nearest.empty() ? "" : " (did you mean '" + nearest + "'?)"));
}

}  // namespace

StatusOr<int> FindFeatureMap(const Graph& graph, std::span<const ShapeInfo> shapes,
                             const std::string& layer) {
  if (layer.empty()) return LastFeatureMap(graph, shapes);
  RT_ASSIGN_OR_RETURN(const int node, NodeOf(graph, layer));
  if (shapes[node].dst.plane() > 1) return node;
  return InvalidArgument(
      fmt::format("the output of layer '{}' is {}; a feature map has more than "
                  "one pixel",
                  graph.nodes()[node].name, shapes[node].dst.ShapeString()));
}

}  // namespace ringtail
