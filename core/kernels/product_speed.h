// Nothing but 16 x `steps` multiplications of bfloat16 pairs (core/kernels/bfloat16.h), or as many of f32 by
// fma, in registers: for FastBf16Products(). The result depends on all of them. Only where
// HasBf16Products().
#ifndef RINGTAIL_CORE_KERNELS_PRODUCT_SPEED_H_
#define RINGTAIL_CORE_KERNELS_PRODUCT_SPEED_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

RT_DECLARE_KERNEL(float RunBf16Products(int64_t steps))
RT_DECLARE_KERNEL(float RunFloatProducts(int64_t steps))

}  // namespace ringtail

#endif  // RINGTAIL_CORE_KERNELS_PRODUCT_SPEED_H_
