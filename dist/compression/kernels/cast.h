// f32 to 16-bit floats and back, in integer arithmetic: the same bits on machines that have
// instructions for it and on those that do not. See core/kernel_isa.h for how this is compiled.
//
//   f32    s eeeeeeee mmmmmmmmmmmmmmmmmmmmmmm     exponent bias 127
//   bf16   s eeeeeeee mmmmmmm                     the upper half of a float
//   fp16   s eeeee mmmmmmmmmm                     bias 15; up to 65504, subnormal below 2^-14
#ifndef RINGTAIL_DIST_COMPRESSION_KERNELS_CAST_H_
#define RINGTAIL_DIST_COMPRESSION_KERNELS_CAST_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

// To nearest, ties to even; beyond the largest number is infinity; NaN stays NaN.
RT_DECLARE_KERNEL(void ToBf16(const float* src, int64_t n, uint16_t* dst))
RT_DECLARE_KERNEL(void AddBf16(const uint16_t* src, int64_t n, float scale, float* sum))

// dst = fp16(src * factor), to nearest, ties to even. A finite product beyond 65504 becomes
// 65504 with its sign; infinity stays infinity and NaN stays NaN.
RT_DECLARE_KERNEL(void ToFp16(const float* src, int64_t n, float factor, uint16_t* dst))
RT_DECLARE_KERNEL(void AddFp16(const uint16_t* src, int64_t n, float scale, float* sum))

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_KERNELS_CAST_H_
