#include "layers/kernels/highway_gate.h"

namespace ringtail::RT_KERNEL_ISA {
namespace {

constexpr int64_t kChunk = 512;  // floats at a time: the gate stays in the first-level cache

// e^x for |x| <= 87: x = n ln 2 + r, |r| <= ln 2 / 2;
// e^r by its Taylor series, 2^n by writing the exponent's bits.
inline float Exp(float x) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;    // n * high is exact
  constexpr float kLn2Low = -2.12194440e-4F;  // high + low = ln 2
  constexpr float kRound = 12582912.0F;       // 1.5 * 2^23: adding it rounds to a whole number
  const float shifted = x * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = x - n * kLn2High - n * kLn2Low;
  float series = 1 / 5040.0F;
  series = series * r + 1 / 720.0F;
  series = series * r + 1 / 120.0F;
  series = series * r + 1 / 24.0F;
  series = series * r + 1 / 6.0F;
  series = series * r + 0.5F;
  series = series * r + 1;
  series = series * r + 1;
  const int32_t power = (static_cast<int32_t>(n) + 127) << 23;
  float scale;
  __builtin_memcpy(&scale, &power, sizeof(scale));
  return series * scale;
}

void Sigmoid(const float* t, float* s, int64_t n) {
  constexpr float kLimit = 87;  // beyond it e^-t or its inverse leaves the range of a float
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float below = t[i] > kLimit ? kLimit : t[i];  // a NaN passes both comparisons as it is
    const float clamped = below < -kLimit ? -kLimit : below;
    s[i] = 1 / (1 + Exp(-clamped));
  }
}

}  // namespace

void HighwayGateForward(const float* h, const float* t, const float* x, float* dst, int64_t n) {
  float s[kChunk];
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t end = n - begin < kChunk ? n : begin + kChunk;
    Sigmoid(t + begin, s, end - begin);
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) dst[i] = x[i] + s[i - begin] * (h[i] - x[i]);
  }
}

void HighwayGateBackward(const float* h, const float* t, const float* x, const float* diff_dst,
                         float* diff_h, float* diff_t, float* diff_x, int64_t n) {
  float s[kChunk];
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t end = n - begin < kChunk ? n : begin + kChunk;
    Sigmoid(t + begin, s, end - begin);
    if (diff_t != nullptr) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        const float gate = s[i - begin];
        diff_t[i] = gate * (1 - gate) * (h[i] - x[i]) * diff_dst[i];
      }
    }
    if (diff_x != nullptr) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) diff_x[i] = (1 - s[i - begin]) * diff_dst[i];
    }
    if (diff_h != nullptr) {  // last: it may overwrite diff_dst
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) diff_h[i] = s[i - begin] * diff_dst[i];
    }
  }
}

}  // namespace ringtail::RT_KERNEL_ISA
