#include "dist/compression/kernels/levels.h"

#include "dist/compression/kernels/float_bits.h"

namespace ringtail::RT_KERNEL_ISA {

void RoundToCodes(const float* x, int64_t n, float factor, int8_t* codes) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) codes[i] = static_cast<int8_t>(NearestInteger(x[i] * factor));
}

void DrawCodes(const float* x, int64_t n, float factor, int levels, const uint32_t* words,
               int8_t* codes) {
  const auto top = static_cast<float>(levels);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float product = FloatOf(MagnitudeBits(x[i])) * factor;
    const float y = product > top ? top : product;
    const auto level = static_cast<int32_t>(y);
    const float draw = static_cast<float>(static_cast<int32_t>(words[i] >> 8)) * 0x1p-24F;
    const int32_t magnitude = level + (draw < y - static_cast<float>(level) ? 1 : 0);
    codes[i] = static_cast<int8_t>(BitsOf(x[i]) < 0 ? -magnitude : magnitude);
  }
}

void AddCodes(const int8_t* codes, int64_t n, float unit, float* sum) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sum[i] += unit * static_cast<float>(codes[i]);
}

void PackNibbles(const int8_t* codes, int64_t n, uint8_t* bytes) {
#pragma omp simd
  for (int64_t i = 0; i < n / 2; ++i) {
    const auto low = static_cast<uint8_t>(codes[2 * i]);
    const auto high = static_cast<uint8_t>(codes[2 * i + 1]);
    bytes[i] = static_cast<uint8_t>((low & 15) | (high << 4));
  }
}

void UnpackNibbles(const uint8_t* bytes, int64_t n, int8_t* codes) {
#pragma omp simd
  for (int64_t i = 0; i < n / 2; ++i) {
    // Flipping the sign bit and subtracting its value extends it.
    codes[2 * i] = static_cast<int8_t>(((bytes[i] & 15) ^ 8) - 8);
    codes[2 * i + 1] = static_cast<int8_t>(((bytes[i] >> 4) ^ 8) - 8);
  }
}

}  // namespace ringtail::RT_KERNEL_ISA
