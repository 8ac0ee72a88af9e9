// Expansion: composites (residual stages, inverted residual stages, repeats) become primitive
// layers, and every layer's inputs become explicit. What comes out is what the rest of layers/
// works on.
#ifndef RINGTAIL_LAYERS_NET_EXPAND_H_
#define RINGTAIL_LAYERS_NET_EXPAND_H_

#include <string>
#include <vector>

#include "core/status.h"
#include "layers/net.pb.h"

namespace ringtail {

inline constexpr int kMaxLayers = 10000;
inline constexpr char kImages[] = "images";  // the net's input

// A primitive layer and the place of its origin in the config, for messages: "layer[3]", or, inside
// a repeat, "layer[3].repeat.layer[0]".
struct ExpandedLayer {
  LayerConfig config;  // named, all inputs named
  std::string origin;
};

// An error names the layer; its place is then in `error_origin`: that of the layer, or of the field
// of it that is wrong.
StatusOr<std::vector<ExpandedLayer>> ExpandLayers(const NetConfig& config,
                                                  std::string* error_origin);

// The name of the config field of `layer`'s kind ("convolution"); "" if none is set.
std::string KindName(const LayerConfig& layer);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_NET_EXPAND_H_
