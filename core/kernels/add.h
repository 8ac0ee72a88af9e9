// Addition of floats: the inner loop of allreduces, of accumulated gradients and of residuals.
// See core/kernel_isa.h for how this is compiled and called.
#ifndef RINGTAIL_CORE_KERNELS_ADD_H_
#define RINGTAIL_CORE_KERNELS_ADD_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

// sum[i] += addend[i]. They do not overlap. The same bits on every instruction set.
RT_DECLARE_KERNEL(void AddFloats(const float* addend, int64_t n, float* sum))

}  // namespace ringtail

#endif  // RINGTAIL_CORE_KERNELS_ADD_H_
