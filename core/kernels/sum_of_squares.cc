#include "core/kernels/sum_of_squares.h"

namespace ringtail::RT_KERNEL_ISA {

void AddSquares(const float* a, int64_t n, double* lanes) {
  double sums[kSumOfSquaresLanes];
  for (int64_t lane = 0; lane < kSumOfSquaresLanes; ++lane) sums[lane] = lanes[lane];
  for (int64_t i = 0; i < n; i += kSumOfSquaresLanes) {
#pragma omp simd
    for (int64_t lane = 0; lane < kSumOfSquaresLanes; ++lane) {
      const double x = a[i + lane];
      sums[lane] += x * x;
    }
  }
  for (int64_t lane = 0; lane < kSumOfSquaresLanes; ++lane) lanes[lane] = sums[lane];
}

}  // namespace ringtail::RT_KERNEL_ISA
