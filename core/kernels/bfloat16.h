// Arrays of floats to bfloat16 and back. See core/kernel_isa.h for how this is compiled and called.
// Cost: near the speed of memory.
#ifndef RINGTAIL_CORE_KERNELS_BFLOAT16_H_
#define RINGTAIL_CORE_KERNELS_BFLOAT16_H_

#include <cstdint>

#include "core/bfloat16.h"
#include "core/kernel_isa.h"

namespace ringtail {

// dst[i] = Widen(src[i]) and Narrow(src[i]). The same bits on every instruction set. They do not
// overlap.
RT_DECLARE_KERNEL(void WidenBfloat16(const Bfloat16* src, int64_t n, float* dst))
RT_DECLARE_KERNEL(void NarrowToBfloat16(const float* src, int64_t n, Bfloat16* dst))
// sum[i] = Narrow(Widen(sum[i]) + Widen(addend[i])): AddFloats (core/kernels/add.h) of bfloat16.
RT_DECLARE_KERNEL(void AddBfloat16(const Bfloat16* addend, int64_t n, Bfloat16* sum))

}  // namespace ringtail

#endif  // RINGTAIL_CORE_KERNELS_BFLOAT16_H_
