// Element-wise loops over n floats. See core/kernel_isa.h for how they are compiled and called.
#ifndef RINGTAIL_LAYERS_KERNELS_ELEMENTWISE_H_
#define RINGTAIL_LAYERS_KERNELS_ELEMENTWISE_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

// dst += src
RT_DECLARE_KERNEL(void AddInto(const float* src, float* dst, int64_t n))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_ELEMENTWISE_H_
