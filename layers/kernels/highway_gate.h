// The highway gate's inner loops over n floats, s = sigmoid(t).
//
//   forward:   dst = x + s (h - x)
//   backward:  diff_h = s diff_dst
//              diff_t = s (1 - s) (h - x) diff_dst
//              diff_x = (1 - s) diff_dst
//
// dst may be h. diff_h may be diff_dst, diff_t may be t, diff_x may be x; each of the three may be
// null. sigmoid is right to 2e-7 of its value for |t| <= 80.
// See core/kernel_isa.h for how this is compiled and called.
#ifndef RINGTAIL_LAYERS_KERNELS_HIGHWAY_GATE_H_
#define RINGTAIL_LAYERS_KERNELS_HIGHWAY_GATE_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

RT_DECLARE_KERNEL(void HighwayGateForward(const float* h, const float* t, const float* x,
                                          float* dst, int64_t n))
RT_DECLARE_KERNEL(void HighwayGateBackward(const float* h, const float* t, const float* x,
                                           const float* diff_dst, float* diff_h, float* diff_t,
                                           float* diff_x, int64_t n))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_HIGHWAY_GATE_H_
