// Integer functions of kernels: those of the standard library and of core/round.h are inline
// functions that other translation units share (core/kernel_isa.h). Only for layers/kernels/.
#ifndef RINGTAIL_LAYERS_KERNELS_INTEGERS_H_
#define RINGTAIL_LAYERS_KERNELS_INTEGERS_H_

#include <cstdint>

namespace ringtail::RT_KERNEL_ISA {

[[gnu::always_inline]] static inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
[[gnu::always_inline]] static inline int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }
// n / divisor, rounded up; n >= 0, divisor > 0.
[[gnu::always_inline]] static inline int64_t CeilDivide(int64_t n, int64_t divisor) {
  return (n + divisor - 1) / divisor;
}

}  // namespace ringtail::RT_KERNEL_ISA

#endif  // RINGTAIL_LAYERS_KERNELS_INTEGERS_H_
