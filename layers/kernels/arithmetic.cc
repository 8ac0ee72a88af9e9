#include "layers/kernels/arithmetic.h"

#include "layers/kernels/clamp.h"

namespace ringtail::RT_KERNEL_ISA {

template <typename Element>
void AddClamped(const Element* a, const Element* b, int64_t n, float low, float high,
                Element* dst) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    dst[i] = NarrowTo<Element>(Clamped(Widen(a[i]) + Widen(b[i]), low, high));
  }
}
template void AddClamped(const float*, const float*, int64_t, float, float, float*);
template void AddClamped(const Bfloat16*, const Bfloat16*, int64_t, float, float, Bfloat16*);

void Multiply(const float* a, const float* b, int64_t n, float* dst) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dst[i] = a[i] * b[i];
}

void MultiplyGradient(const float* a, const float* b, const float* diff_dst, int64_t n,
                      float* diff_a, float* diff_b) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float diff = diff_dst[i], factor = b[i];
    diff_b[i] = a[i] * diff;
    diff_a[i] = factor * diff;
  }
}

}  // namespace ringtail::RT_KERNEL_ISA
