#include "core/kernels/bfloat16.h"

namespace ringtail::RT_KERNEL_ISA {

void WidenBfloat16(const Bfloat16* src, int64_t n, float* dst) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dst[i] = Widen(src[i]);
}

void NarrowToBfloat16(const float* src, int64_t n, Bfloat16* dst) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dst[i] = Narrow(src[i]);
}

void AddBfloat16(const Bfloat16* addend, int64_t n, Bfloat16* sum) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sum[i] = Narrow(Widen(sum[i]) + Widen(addend[i]));
}

}  // namespace ringtail::RT_KERNEL_ISA
