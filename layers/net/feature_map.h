// FeatureMap: which blob of a net says where in the image the network has seen what.
//
//   images -> conv -> ... -> conv+relu -> add | -> global pool -> linear -> logits -> loss
//                                         |
//                                         the last feature map: Grad-CAM's A (Selvaraju et al. 2017,
//                                         "Grad-CAM: Visual Explanations from Deep Networks via
//                                         Gradient-based Localization", section 3)
//
// A net made with NetOptions.feature_map keeps it in each Forward, and Net::BackwardFromLogits gives
// the gradient of a score with respect to it.
// Thread-safety: a function without state. Cost: O(nodes).
#ifndef RINGTAIL_LAYERS_NET_FEATURE_MAP_H_
#define RINGTAIL_LAYERS_NET_FEATURE_MAP_H_

#include <span>
#include <string>

#include "core/status.h"
#include "layers/layer.h"
#include "layers/net/graph.h"

namespace ringtail {

// The node called `layer`, or the last of the composite called so ("layer4"). If `layer` is empty,
// the last one whose output has more than one pixel, comes after a convolution, and is not that of a
// pooling: the end of the last residual stage, or the last convolution with what follows it pixel by
// pixel (batch norm, activation, dropout). In a net of branches that join after pooling it is the
// last branch's. `shapes`: by node.
// NotFound if there is none. InvalidArgument if the named one does not exist (with the nearest
// name), is an activation that another layer computes, or has one pixel.
StatusOr<int> FindFeatureMap(const Graph& graph, std::span<const ShapeInfo> shapes,
                             const std::string& layer);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_NET_FEATURE_MAP_H_
