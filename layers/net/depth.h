// How far from the loss each parameter lies, for rates by depth and for freezing.
//
// A group is an entry of the config's net.layer with a convolution or linear weight, together with
// the entries after it that have vectors only (its batch norm). Depth 0 is the last group, the
// head.
//
//   conv1  bn1 | layer1 | layer2 | layer3 | layer4 | fc
//       5      |   4    |   3    |   2    |   1    |  0
//
// Thread-safety: functions without state. Cost: O(nodes times names).
#ifndef RINGTAIL_LAYERS_NET_DEPTH_H_
#define RINGTAIL_LAYERS_NET_DEPTH_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "layers/layer.h"
#include "layers/net/graph.h"

namespace ringtail {

// As a name of a layer to freeze: all layers with parameters except the last.
inline constexpr std::string_view kAllButHead = "all-but-head";

// By node; 0 for those without parameters.
std::vector<int> DepthsOf(const Graph& graph, std::span<const ShapeInfo> shapes);

// By node: whether it has parameters and is frozen. A name stands for the layer of that name and
// for all whose names begin with it and a dot. InvalidArgument if a name fits no layer with
// parameters (with the nearest name), if nothing would be left to train, or if a layer that trains
// lies before a frozen one: its gradient would have to pass through that.
StatusOr<std::vector<bool>> FrozenNodes(const Graph& graph, std::span<const ShapeInfo> shapes,
                                        std::span<const std::string> names);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_NET_DEPTH_H_
