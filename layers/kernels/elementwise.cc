#include "layers/kernels/elementwise.h"

namespace ringtail::RT_KERNEL_ISA {

void AddInto(const float* src, float* dst, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dst[i] += src[i];
}

}  // namespace ringtail::RT_KERNEL_ISA
