#include "core/kernels/add.h"

namespace ringtail::RT_KERNEL_ISA {

void AddFloats(const float* addend, int64_t n, float* sum) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sum[i] += addend[i];
}

}  // namespace ringtail::RT_KERNEL_ISA
