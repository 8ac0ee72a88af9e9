#include "layers/net/depth.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/config/nearest_name.h"

namespace ringtail {
namespace {

bool HasParameters(const ShapeInfo& shape) { return !shape.parameters.empty(); }

bool HasMatrix(const ShapeInfo& shape) {
  return std::any_of(
      shape.parameters.begin(), shape.parameters.end(),
      [](const ParameterRequest& p) { return p.spec.kind != ParameterKind::kVector; });
}

// "layer[3]" of "layer[3].repeat.layer[0]".
std::string EntryOf(const Node& node) { return node.origin.substr(0, node.origin.find('.')); }

bool IsNamed(const std::string& layer, const std::string& name) {
  return layer == name || layer.starts_with(name + ".");
}

// Names of layers with parameters, and what they begin with: "layer1", "layer1.0", ...
std::vector<std::string> PossibleNames(const Graph& graph, std::span<const ShapeInfo> shapes) {
  std::vector<std::string> names = {std::string(kAllButHead)};
  for (int i = 0; i < graph.size(); ++i) {
    if (!HasParameters(shapes[i])) continue;
    const std::string& name = graph.nodes()[i].name;
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      names.push_back(name.substr(0, dot));
    }
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Status Unknown(const std::string& name, const Graph& graph, std::span<const ShapeInfo> shapes) {
  const std::string nearest = NearestName(name, PossibleNames(graph, shapes));
  return InvalidArgument(fmt::format(
      "'{}' is no layer with weights{}; name layers as `summary` does, or {}", name,
      nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest), kAllButHead));
}

// Every node that a frozen one reads, directly or not, must be without weights or frozen itself.
Status CheckNothingTrainsBefore(const Graph& graph, std::span<const ShapeInfo> shapes,
                                const std::vector<bool>& frozen) {
  std::vector<int> trains_before(graph.size(), kImagesInput);  // a node that trains, or none
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes()[i];
    for (const int input : node.inputs) {
      if (input != kImagesInput && trains_before[input] != kImagesInput) {
        trains_before[i] = trains_before[input];
      }
    }
    if (frozen[i] && trains_before[i] != kImagesInput) {
      return InvalidArgument(
          fmt::format("'{}' is frozen, but '{}' before it is not; freeze from the images up to "
                      "some layer, so that backward can end there",
                      node.name, graph.nodes()[trains_before[i]].name));
    }
    if (HasParameters(shapes[i]) && !frozen[i]) trains_before[i] = i;
  }
  return OkStatus();
}

int LastWithParameters(std::span<const ShapeInfo> shapes) {
  int last = static_cast<int>(shapes.size()) - 1;
  while (last >= 0 && !HasParameters(shapes[last])) --last;
  return last;
}

}  // namespace

std::vector<int> DepthsOf(const Graph& graph, std::span<const ShapeInfo> shapes) {
  std::vector<int> groups(graph.size(), 0);
  int group = -1;
  std::string entry;
  for (int i = 0; i < graph.size(); ++i) {
    const std::string of_node = EntryOf(graph.nodes()[i]);
    if (HasMatrix(shapes[i]) && (group < 0 || of_node != entry)) {
      ++group;
      entry = of_node;
    }
    groups[i] = std::max(group, 0);
  }
  for (int i = 0; i < graph.size(); ++i) {
    groups[i] = HasParameters(shapes[i]) ? std::max(group, 0) - groups[i] : 0;
  }
  return groups;
}

StatusOr<std::vector<bool>> FrozenNodes(const Graph& graph, std::span<const ShapeInfo> shapes,
                                        std::span<const std::string> names) {
  std::vector<bool> frozen(graph.size(), false);
  const int head = LastWithParameters(shapes);
  for (const std::string& name : names) {
    bool found = false;
    for (int i = 0; i < graph.size(); ++i) {
      if (!HasParameters(shapes[i])) continue;
      const bool meant = name == kAllButHead ? i != head : IsNamed(graph.nodes()[i].name, name);
      frozen[i] = frozen[i] || meant;
      found = found || meant;
    }
    if (!found) return Unknown(name, graph, shapes);
  }
  if (head >= 0 && frozen[head]) {
    return InvalidArgument(
        fmt::format("'{}', the last layer with weights, is frozen: nothing is left to train",
                    graph.nodes()[head].name));
  }
  RT_RETURN_IF_ERROR(CheckNothingTrainsBefore(graph, shapes, frozen));
  return frozen;
}

}  // namespace ringtail
