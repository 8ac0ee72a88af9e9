// Copies of stretches of pixels through a map: what a convolution's batch norms leave to its loads.
// Blobs are blocked by the lanes of the instruction set: one channel block of one sample is
// [pixel][lane].
#ifndef RINGTAIL_LAYERS_KERNELS_MAP_PIXELS_H_
#define RINGTAIL_LAYERS_KERNELS_MAP_PIXELS_H_

#include <cstdint>

#include "core/kernel_isa.h"
#include "layers/kernels/affine.h"

namespace ringtail {

// From blob [block][piece][pixel][lane] with strides, in floats, to `to` without gaps.
struct PixelCopy {
  const float* from;
  int64_t block_stride, piece_stride;
  int64_t blocks, pieces, pixels;
  float* to;
};

// to = affine(from); the affine's arrays begin with the channels of the first block.
RT_DECLARE_KERNEL(void MapPixels(const PixelCopy& copy, const ChannelAffine& affine))
// to = gradient(from); so do the gradient's arrays, and its src lies as `from` does.
RT_DECLARE_KERNEL(void MapGradientPixels(const PixelCopy& copy, const ChannelGradient& gradient))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_MAP_PIXELS_H_
