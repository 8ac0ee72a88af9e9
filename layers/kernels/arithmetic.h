// Sums and products over n floats. dst may be a; see each for what a gradient may overwrite.
#ifndef RINGTAIL_LAYERS_KERNELS_ARITHMETIC_H_
#define RINGTAIL_LAYERS_KERNELS_ARITHMETIC_H_

#include <cstdint>

#include "core/kernel_isa.h"
#include "core/kernels/bfloat16.h"

namespace ringtail {

// dst = min(max(a + b, low), high): the bounds are a fused activation. NaN passes through.
// Element: float or Bfloat16, which is rounded once.
RT_DECLARE_KERNEL(template <typename Element> void AddClamped(const Element* a, const Element* b,
                                                              int64_t n, float low, float high,
                                                              Element* dst))
// dst = a b
RT_DECLARE_KERNEL(void Multiply(const float* a, const float* b, int64_t n, float* dst))
// diff_a = b diff_dst, diff_b = a diff_dst; diff_a may be diff_dst, diff_b may be b.
RT_DECLARE_KERNEL(void MultiplyGradient(const float* a, const float* b, const float* diff_dst,
                                        int64_t n, float* diff_a, float* diff_b))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_ARITHMETIC_H_
