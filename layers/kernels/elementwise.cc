#include "layers/kernels/elementwise.h"

namespace ringtail::RT_KERNEL_ISA {

void AddInto(const float* src, float* dst, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dst[i] += src[i];
}

void ReluBackward(const float* dst, float* diff, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) diff[i] = dst[i] > 0 ? diff[i] : 0;
}

void Relu6Backward(const float* dst, float* diff, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) diff[i] = dst[i] > 0 && dst[i] < 6 ? diff[i] : 0;
}

}  // namespace ringtail::RT_KERNEL_ISA
