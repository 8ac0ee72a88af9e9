// The inner loop of core/sum_of_squares.h. See core/kernel_isa.h for how this is compiled and called.
#ifndef RINGTAIL_CORE_KERNELS_SUM_OF_SQUARES_H_
#define RINGTAIL_CORE_KERNELS_SUM_OF_SQUARES_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

inline constexpr int64_t kSumOfSquaresLanes = 16;

// lanes[i mod 16] += a[i]^2, in the order of i; `n` is a multiple of 16. The same bits on every
// instruction set: the square of a float is exact in double, however it is added.
RT_DECLARE_KERNEL(void AddSquares(const float* a, int64_t n, double* lanes))

}  // namespace ringtail

#endif  // RINGTAIL_CORE_KERNELS_SUM_OF_SQUARES_H_
