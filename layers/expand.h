// Expansion: composites (residual stages, inverted residual stages, repeats) become primitive
// layers, and every layer's inputs become explicit. What comes out is what the rest of layers/
// works on.
#ifndef RINGTAIL_LAYERS_EXPAND_H_
#define RINGTAIL_LAYERS_EXPAND_H_

#include <string>
#include <vector>

#include "core/status.h"
#include "layers/net.pb.h"

namespace ringtail {

inline constexpr int kMaxLayers = 10000;
inline constexpr char kImages[] = "images";  // the net's input

// A primitive layer and the place of its origin in the config ("layer[3]"), for messages.
struct ExpandedLayer {
  LayerConfig config;  // named, all inputs named
  std::string origin;
};

// An error names the layer and carries its place in `error_origin`.
StatusOr<std::vector<ExpandedLayer>> ExpandLayers(const NetConfig& config,
                                                  std::string* error_origin);

// The name of the config field of `layer`'s kind ("convolution"); "" if none is set.
std::string KindName(const LayerConfig& layer);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_EXPAND_H_
