// Max pooling over one channel block of one sample:
// planes (H, W, block) -> (OH, OW, block), block 1, 8 or 16.
#ifndef RINGTAIL_LAYERS_KERNELS_MAX_POOL_H_
#define RINGTAIL_LAYERS_KERNELS_MAX_POOL_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

struct MaxPoolGeometry {
  int64_t H, W, OH, OW;
  int64_t KH, KW, SH, SW;  // every window has at least one element inside the image
  int64_t PT, PL;
};

// dst = maximum of each window; winner = kh * KW + kw of the first maximum (not written if null).
// A NaN in a window is its maximum. The 8-bit form is for KH * KW <= 256.
RT_DECLARE_KERNEL(void MaxPoolForward(const float* src, const MaxPoolGeometry& g, int64_t block,
                                      float* dst, uint8_t* winner))
RT_DECLARE_KERNEL(void MaxPoolForwardWide(const float* src, const MaxPoolGeometry& g, int64_t block,
                                          float* dst, int32_t* winner))
// diff_src = sum of diff_dst over the windows that an element won, 0 elsewhere.
RT_DECLARE_KERNEL(void MaxPoolBackward(const float* diff_dst, const uint8_t* winner,
                                       const MaxPoolGeometry& g, int64_t block, float* diff_src))
RT_DECLARE_KERNEL(void MaxPoolBackwardWide(const float* diff_dst, const int32_t* winner,
                                           const MaxPoolGeometry& g, int64_t block,
                                           float* diff_src))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_MAX_POOL_H_
