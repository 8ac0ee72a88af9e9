// Averages over windows of one channel block of one sample:
// planes (H, W, block) -> (OH, OW, block), block 1, 8 or 16.
#ifndef RINGTAIL_LAYERS_KERNELS_AVERAGE_POOL_H_
#define RINGTAIL_LAYERS_KERNELS_AVERAGE_POOL_H_

#include <cstdint>

#include "core/kernel_isa.h"
#include "core/kernels/bfloat16.h"

namespace ringtail {

// Rows (or columns) begin .. end - 1 of the image, not empty; the average divides by `count`.
// Begins and ends never decrease from one window to the next.
struct PoolSpan {
  int64_t begin, end, count;
};

struct AveragePoolGeometry {
  int64_t H, W, OH, OW;
  const PoolSpan *rows, *columns;  // OH, OW
};

// dst = sum over the window / (row count * column count). Element: float or Bfloat16; sums are
// floats, except where windows of a gradient overlap: these are rounded after each addition.
RT_DECLARE_KERNEL(template <typename Element> void AveragePoolForward(const Element* src,
                                                                      const AveragePoolGeometry& g,
                                                                      int64_t block, Element* dst))
// diff_src = sum over the windows with the element of diff_dst / (row count * column count)
RT_DECLARE_KERNEL(template <typename Element>
                  void AveragePoolBackward(const Element* diff_dst, const AveragePoolGeometry& g,
                                           int64_t block, Element* diff_src))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_AVERAGE_POOL_H_
