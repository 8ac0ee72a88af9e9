// Activations and their gradients over n floats, or Elements: float or Bfloat16. A gradient is a function of dst, what the
// activation returned. dst may be src, and diff_src may be diff_dst. NaN passes through.
#ifndef RINGTAIL_LAYERS_KERNELS_ACTIVATION_H_
#define RINGTAIL_LAYERS_KERNELS_ACTIVATION_H_

#include <cstdint>

#include "core/kernel_isa.h"
#include "core/kernels/bfloat16.h"

namespace ringtail {

// dst = min(max(src, low), high);  diff_src = low < dst < high ? diff_dst : 0
RT_DECLARE_KERNEL(template <typename Element>
                  void Clamp(const Element* src, int64_t n, float low, float high, Element* dst))
RT_DECLARE_KERNEL(template <typename Element>
                  void ClampGradient(const Element* dst, const Element* diff_dst, int64_t n,
                                     float low, float high, Element* diff_src))
// dst = src > 0 ? src : slope src, slope >= 0;  diff_src = dst > 0 ? diff_dst : slope diff_dst
RT_DECLARE_KERNEL(void LeakyRelu(const float* src, int64_t n, float slope, float* dst))
RT_DECLARE_KERNEL(void LeakyReluGradient(const float* dst, const float* diff_dst, int64_t n,
                                         float slope, float* diff_src))
// diff_src = dst (1 - dst) diff_dst
RT_DECLARE_KERNEL(void SigmoidGradient(const float* dst, const float* diff_dst, int64_t n,
                                       float* diff_src))
// diff_src = (1 - dst^2) diff_dst
RT_DECLARE_KERNEL(void TanhGradient(const float* dst, const float* diff_dst, int64_t n,
                                    float* diff_src))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_ACTIVATION_H_
