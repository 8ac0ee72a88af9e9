#include "layers/kernels/activation.h"

#include "layers/kernels/clamp.h"

namespace ringtail::RT_KERNEL_ISA {

template <typename Element>
void Clamp(const Element* src, int64_t n, float low, float high, Element* dst) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dst[i] = NarrowTo<Element>(Clamped(Widen(src[i]), low, high));
}
template void Clamp(const float*, int64_t, float, float, float*);
template void Clamp(const Bfloat16*, int64_t, float, float, Bfloat16*);

template <typename Element>
void ClampGradient(const Element* dst, const Element* diff_dst, int64_t n, float low, float high,
                   Element* diff_src) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float diff = Widen(diff_dst[i]), y = Widen(dst[i]);
    diff_src[i] = NarrowTo<Element>(((y > low) & (y < high)) ? diff : 0);
  }
}
template void ClampGradient(const float*, const float*, int64_t, float, float, float*);
template void ClampGradient(const Bfloat16*, const Bfloat16*, int64_t, float, float, Bfloat16*);

void LeakyRelu(const float* src, int64_t n, float slope, float* dst) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dst[i] = src[i] > 0 ? src[i] : slope * src[i];
}

void LeakyReluGradient(const float* dst, const float* diff_dst, int64_t n, float slope,
                       float* diff_src) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) diff_src[i] = dst[i] > 0 ? diff_dst[i] : slope * diff_dst[i];
}

void SigmoidGradient(const float* dst, const float* diff_dst, int64_t n, float* diff_src) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) diff_src[i] = dst[i] * (1 - dst[i]) * diff_dst[i];
}

void TanhGradient(const float* dst, const float* diff_dst, int64_t n, float* diff_src) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) diff_src[i] = (1 - dst[i] * dst[i]) * diff_dst[i];
}

}  // namespace ringtail::RT_KERNEL_ISA
