#include "dist/compression/kernels/cast.h"

#include "core/kernels/bfloat16.h"
#include "dist/compression/kernels/float_bits.h"

namespace ringtail::RT_KERNEL_ISA {
namespace {

constexpr int32_t kInfinity = 0x7f800000;

// After Fabian Giesen, "Float->half conversions" (public domain), with saturation.
inline uint16_t Fp16(float x) {
  constexpr int32_t kSmallestNormal = 113 << 23;  // 2^-14
  constexpr int32_t kSubnormalMagic = 126 << 23;  // 0.5, whose last bit is fp16's smallest number
  const int32_t bits = BitsOf(x), magnitude = bits & 0x7fffffff;
  // Adding 0.5 moves a subnormal's bits to the right place, and rounds them.
  const int32_t subnormal = BitsOf(FloatOf(magnitude) + FloatOf(kSubnormalMagic)) - kSubnormalMagic;
  // Rebias; a carry out of the mantissa increments the exponent.
  const int32_t odd = magnitude >> 13 & 1;
  const int32_t normal = (magnitude - (112 << 23) + 0xfff + odd) >> 13;
  int32_t half = magnitude < kSmallestNormal ? subnormal : normal;
  half = half > 0x7bff ? 0x7bff : half;
  half = magnitude == kInfinity ? 0x7c00 : half;
  half = magnitude > kInfinity ? 0x7e00 : half;
  return static_cast<uint16_t>(half | (bits >> 16 & 0x8000));
}

inline float FromFp16(uint16_t half) {
  constexpr int32_t kExponent = 0x7c00 << 13;
  const int32_t shifted = (half & 0x7fff) << 13;
  const int32_t exponent = shifted & kExponent;
  const int32_t normal = shifted + (112 << 23);
  // The mantissa after an implicit 1 that a subnormal does not have, which is then subtracted.
  const int32_t subnormal = BitsOf(FloatOf(shifted + (113 << 23)) - FloatOf(113 << 23));
  int32_t bits = exponent == 0 ? subnormal : normal;
  bits = exponent == kExponent ? shifted + (224 << 23) : bits;
  return FloatOf(bits | static_cast<int32_t>(static_cast<uint32_t>(half & 0x8000) << 16));
}

}  // namespace

void ToBf16(const float* src, int64_t n, uint16_t* dst) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dst[i] = Narrow(src[i]).bits;
}

void AddBf16(const uint16_t* src, int64_t n, float scale, float* sum) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sum[i] += scale * Widen(Bfloat16{src[i]});
}

void ToFp16(const float* src, int64_t n, float factor, uint16_t* dst) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dst[i] = Fp16(src[i] * factor);
}

void AddFp16(const uint16_t* src, int64_t n, float scale, float* sum) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sum[i] += scale * FromFp16(src[i]);
}

}  // namespace ringtail::RT_KERNEL_ISA
