// What convolutions by tiles (AMX), or by pairs (vdpbf16ps), are made for.
// Thread-safety: pure functions.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_TILES_TILE_PROBLEM_H_
#define RINGTAIL_LAYERS_CONVOLUTION_TILES_TILE_PROBLEM_H_

#include "layers/convolution/convolution_algorithm.h"
#include "layers/element_types/bf16_unit.h"
#include "layers/kernels/bf16/bf16_tiles.h"

namespace ringtail {

// Any window without dilation, one group, bf16 blobs in blocks of 16, on a machine with tiles or
// with products of pairs.
inline bool IsForTiles(const ConvolutionProblem& p) {
  const auto is_blocked = [](const BlobDesc& desc) {
    return desc.type == BlobType::kBf16 && desc.block == kTileOutputs;
  };
  return p.groups == 1 && p.window.DH == 1 && p.window.DW == 1 && is_blocked(p.src) &&
         is_blocked(p.dst) && BestBf16Unit() != Bf16Unit::kNone;
}

// The name of the algorithm: in caches, too.
constexpr const char* TileAlgorithmName(Bf16Unit unit) {
  return unit == Bf16Unit::kTiles ? "tiles bf16" : "direct bf16";
}

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_TILES_TILE_PROBLEM_H_
