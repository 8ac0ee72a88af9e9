// A float as its bits and back, and magnitudes as integers, whose order is that of the numbers:
// 0 < .. < 0x7f7fffff (largest) < 0x7f800000 (infinity) < NaN. Only for kernels.
#ifndef RINGTAIL_DIST_COMPRESSION_KERNELS_FLOAT_BITS_H_
#define RINGTAIL_DIST_COMPRESSION_KERNELS_FLOAT_BITS_H_

#include <cstdint>

namespace ringtail {

[[gnu::always_inline]] static inline int32_t BitsOf(float x) {
  return __builtin_bit_cast(int32_t, x);
}
[[gnu::always_inline]] static inline float FloatOf(int32_t bits) {
  return __builtin_bit_cast(float, bits);
}
[[gnu::always_inline]] static inline int32_t MagnitudeBits(float x) {
  return BitsOf(x) & 0x7fffffff;
}

// Nearest integer, ties to even, for |x| < 2^22: adding 1.5 * 2^23 leaves no room for a fraction.
[[gnu::always_inline]] static inline int32_t NearestInteger(float x) {
  constexpr float kMagic = 12582912.0F;
  return BitsOf(x + kMagic) - 0x4b400000;
}

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_KERNELS_FLOAT_BITS_H_
