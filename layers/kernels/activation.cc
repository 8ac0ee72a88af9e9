#include "layers/kernels/activation.h"

#include "layers/kernels/clamp.h"

namespace ringtail::RT_KERNEL_ISA {

void Clamp(const float* src, int64_t n, float low, float high, float* dst) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dst[i] = Clamped(src[i], low, high);
}

void ClampGradient(const float* dst, const float* diff_dst, int64_t n, float low, float high,
                   float* diff_src) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float diff = diff_dst[i];
    diff_src[i] = ((dst[i] > low) & (dst[i] < high)) ? diff : 0;
  }
}

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
