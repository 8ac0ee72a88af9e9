// What convolutions by tiles (AMX) are made for. Thread-safety: a pure function.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_TILES_TILE_PROBLEM_H_
#define RINGTAIL_LAYERS_CONVOLUTION_TILES_TILE_PROBLEM_H_

#include "layers/convolution/convolution_algorithm.h"
#include "layers/convolution/tiles/has_tiles.h"
#include "layers/kernels/bf16/bf16_tiles.h"

namespace ringtail {

// Any window without dilation, one group, bf16 blobs in blocks of 16, on a machine with tiles.
inline bool IsForTiles(const ConvolutionProblem& p) {
  const auto is_blocked = [](const BlobDesc& desc) {
    return desc.type == BlobType::kBf16 && desc.block == kTileOutputs;
  };
  return p.groups == 1 && p.window.DH == 1 && p.window.DW == 1 && is_blocked(p.src) &&
         is_blocked(p.dst) && HasBf16Tiles();
}

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_TILES_TILE_PROBLEM_H_
