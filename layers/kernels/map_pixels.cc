#include "layers/kernels/map_pixels.h"

#include "layers/kernels/vec_affine.h"

namespace ringtail::RT_KERNEL_ISA {
namespace {

// Calls map(block, from, to) for each piece of each block; offsets in floats.
template <typename Map>
[[gnu::always_inline]] inline void ForEachPiece(const PixelCopy& copy, const Map& map) {
  const int64_t floats = copy.pixels * kLanes;
  for (int64_t block = 0; block < copy.blocks; ++block) {
    for (int64_t piece = 0; piece < copy.pieces; ++piece) {
      map(block, block * copy.block_stride + piece * copy.piece_stride,
          (block * copy.pieces + piece) * floats);
    }
  }
}

}  // namespace

void MapPixels(const PixelCopy& copy, const ChannelAffine& affine) {
  ForEachPiece(copy, [&](int64_t block, int64_t from, int64_t to) {
    const int64_t c = block * kLanes;
    const VecAffine map(
        {affine.mean + c, affine.scale + c, affine.bias + c, affine.low, affine.high});
    for (int64_t i = 0; i < copy.pixels * kLanes; i += kLanes) {
      Store(copy.to + to + i, map(Load(copy.from + from + i)));
    }
  });
}

void MapGradientPixels(const PixelCopy& copy, const ChannelGradient& gradient) {
  const ChannelAffine& affine = gradient.affine;
  ForEachPiece(copy, [&](int64_t block, int64_t from, int64_t to) {
    const int64_t c = block * kLanes;
    const VecGradient map(
        {gradient.src,
         {affine.mean + c, affine.scale + c, affine.bias + c, affine.low, affine.high},
         gradient.slope + c,
         gradient.offset + c});
    for (int64_t i = 0; i < copy.pixels * kLanes; i += kLanes) {
      Store(copy.to + to + i, map(Load(gradient.src + from + i), Load(copy.from + from + i)));
    }
  });
}

}  // namespace ringtail::RT_KERNEL_ISA
