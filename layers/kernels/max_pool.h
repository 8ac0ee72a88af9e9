// Max pooling over one channel block of one sample:
// planes (H, W, block) -> (OH, OW, block), block 1, 8 or 16.
#ifndef RINGTAIL_LAYERS_KERNELS_MAX_POOL_H_
#define RINGTAIL_LAYERS_KERNELS_MAX_POOL_H_

#include <cstdint>

#include "core/kernel_isa.h"
#include "core/kernels/bfloat16.h"

namespace ringtail {

struct MaxPoolGeometry {
  int64_t H, W, OH, OW;
  int64_t KH, KW, SH, SW;  // every window has at least one element inside the image
  int64_t PT, PL;
};

// dst = maximum of each window; winner = kh * KW + kw of the first maximum (not written if null).
// A NaN in a window is its maximum. The 8-bit form is for KH * KW <= 256.
RT_DECLARE_KERNEL(template <typename Element>
                  void MaxPoolForward(const Element* src, const MaxPoolGeometry& g, int64_t block,
                                      Element* dst, uint8_t* winner))
RT_DECLARE_KERNEL(template <typename Element>
                  void MaxPoolForwardWide(const Element* src, const MaxPoolGeometry& g,
                                          int64_t block, Element* dst, int32_t* winner))
// diff_src = sum of diff_dst over the windows that an element won, 0 elsewhere; rounded after each
// addition, where Element is Bfloat16.
RT_DECLARE_KERNEL(template <typename Element>
                  void MaxPoolBackward(const Element* diff_dst, const uint8_t* winner,
                                       const MaxPoolGeometry& g, int64_t block, Element* diff_src))
RT_DECLARE_KERNEL(template <typename Element>
                  void MaxPoolBackwardWide(const Element* diff_dst, const int32_t* winner,
                                           const MaxPoolGeometry& g, int64_t block,
                                           Element* diff_src))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_MAX_POOL_H_
