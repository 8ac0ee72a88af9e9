// Sums and maxima that codecs need of a gradient before they write it. Each sum has 16 partial sums
// in double, element i in partial sum i % 16, which are added up in one fixed order: the same bits
// for every instruction set. See core/kernel_isa.h for how this is compiled and called.
#ifndef RINGTAIL_DIST_COMPRESSION_KERNELS_SUMS_H_
#define RINGTAIL_DIST_COMPRESSION_KERNELS_SUMS_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

struct SignedSums {
  double positive = 0, negative = 0;  // `negative`: of elements with the sign bit set
};

RT_DECLARE_KERNEL(double SumAbs(const float* x, int64_t n))
RT_DECLARE_KERNEL(double SumSquares(const float* x, int64_t n))
RT_DECLARE_KERNEL(SignedSums SumBySign(const float* x, int64_t n))

// to += x, and SumAbs or SumBySign of the result, in one pass over memory.
RT_DECLARE_KERNEL(double AddAndSumAbs(const float* x, int64_t n, float* to))
RT_DECLARE_KERNEL(SignedSums AddAndSumBySign(const float* x, int64_t n, float* to))

// The largest |x| as a float's bits, which is infinity or NaN if any element is.
RT_DECLARE_KERNEL(int32_t MaxMagnitudeBits(const float* x, int64_t n))
// The largest |code|.
RT_DECLARE_KERNEL(int32_t MaxCode(const int8_t* codes, int64_t n))

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_KERNELS_SUMS_H_
