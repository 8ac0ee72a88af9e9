// Sixteen floats in registers, and comparisons that give one bit per float (bit j: element j),
// which compilers do not generate from plain loops. MagnitudeAtLeast compares as float_bits.h says,
// with limits >= 0. Only for kernels.
#ifndef RINGTAIL_DIST_COMPRESSION_KERNELS_LANES16_H_
#define RINGTAIL_DIST_COMPRESSION_KERNELS_LANES16_H_

#include <immintrin.h>

#include <cstdint>

namespace ringtail::RT_KERNEL_ISA {

#if defined(__AVX512F__)

struct Lanes16 {
  __m512 v;
};
[[gnu::always_inline]] static inline Lanes16 Load16(const float* x) { return {_mm512_loadu_ps(x)}; }
[[gnu::always_inline]] static inline uint32_t SignBits(Lanes16 x) {
  return _mm512_movepi32_mask(_mm512_castps_si512(x.v));
}
[[gnu::always_inline]] static inline uint32_t AtLeast(Lanes16 x, float limit) {
  return _mm512_cmp_ps_mask(x.v, _mm512_set1_ps(limit), _CMP_GE_OQ);
}
[[gnu::always_inline]] static inline uint32_t AtMost(Lanes16 x, float limit) {
  return _mm512_cmp_ps_mask(x.v, _mm512_set1_ps(limit), _CMP_LE_OQ);
}
[[gnu::always_inline]] static inline uint32_t MagnitudeAtLeast(Lanes16 x, int32_t limit) {
  const __m512i bits = _mm512_and_si512(_mm512_castps_si512(x.v), _mm512_set1_epi32(0x7fffffff));
  return _mm512_cmpge_epi32_mask(bits, _mm512_set1_epi32(limit));
}

#elif defined(__AVX2__)

struct Lanes16 {
  __m256 v[2];
};
[[gnu::always_inline]] static inline Lanes16 Load16(const float* x) {
  return {{_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8)}};
}
[[gnu::always_inline]] static inline uint32_t SignBits(Lanes16 x) {
  return static_cast<uint32_t>(_mm256_movemask_ps(x.v[0]) | _mm256_movemask_ps(x.v[1]) << 8);
}
[[gnu::always_inline]] static inline uint32_t AtLeast(Lanes16 x, float limit) {
  const __m256 y = _mm256_set1_ps(limit);
  return SignBits({{_mm256_cmp_ps(x.v[0], y, _CMP_GE_OQ), _mm256_cmp_ps(x.v[1], y, _CMP_GE_OQ)}});
}
[[gnu::always_inline]] static inline uint32_t AtMost(Lanes16 x, float limit) {
  const __m256 y = _mm256_set1_ps(limit);
  return SignBits({{_mm256_cmp_ps(x.v[0], y, _CMP_LE_OQ), _mm256_cmp_ps(x.v[1], y, _CMP_LE_OQ)}});
}
[[gnu::always_inline]] static inline __m256 Reach8(__m256 x, int32_t limit) {
  const __m256i bits = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffffff));
  return _mm256_castsi256_ps(_mm256_cmpgt_epi32(bits, _mm256_set1_epi32(limit - 1)));
}
[[gnu::always_inline]] static inline uint32_t MagnitudeAtLeast(Lanes16 x, int32_t limit) {
  return SignBits({{Reach8(x.v[0], limit), Reach8(x.v[1], limit)}});
}

#else  // SSE2, which every x86-64 has

struct Lanes16 {
  __m128 v[4];
};
[[gnu::always_inline]] static inline Lanes16 Load16(const float* x) {
  return {{_mm_loadu_ps(x), _mm_loadu_ps(x + 4), _mm_loadu_ps(x + 8), _mm_loadu_ps(x + 12)}};
}
[[gnu::always_inline]] static inline uint32_t SignBits(Lanes16 x) {
  return static_cast<uint32_t>(_mm_movemask_ps(x.v[0]) | _mm_movemask_ps(x.v[1]) << 4 |
                               _mm_movemask_ps(x.v[2]) << 8 | _mm_movemask_ps(x.v[3]) << 12);
}
[[gnu::always_inline]] static inline uint32_t AtLeast(Lanes16 x, float limit) {
  const __m128 y = _mm_set1_ps(limit);
  return SignBits({{_mm_cmpge_ps(x.v[0], y), _mm_cmpge_ps(x.v[1], y), _mm_cmpge_ps(x.v[2], y),
                    _mm_cmpge_ps(x.v[3], y)}});
}
[[gnu::always_inline]] static inline uint32_t AtMost(Lanes16 x, float limit) {
  const __m128 y = _mm_set1_ps(limit);
  return SignBits({{_mm_cmple_ps(x.v[0], y), _mm_cmple_ps(x.v[1], y), _mm_cmple_ps(x.v[2], y),
                    _mm_cmple_ps(x.v[3], y)}});
}
[[gnu::always_inline]] static inline __m128 Reach4(__m128 x, int32_t limit) {
  const __m128i bits = _mm_and_si128(_mm_castps_si128(x), _mm_set1_epi32(0x7fffffff));
  return _mm_castsi128_ps(_mm_cmpgt_epi32(bits, _mm_set1_epi32(limit - 1)));
}
[[gnu::always_inline]] static inline uint32_t MagnitudeAtLeast(Lanes16 x, int32_t limit) {
  return SignBits({{Reach4(x.v[0], limit), Reach4(x.v[1], limit), Reach4(x.v[2], limit),
                    Reach4(x.v[3], limit)}});
}

#endif

}  // namespace ringtail::RT_KERNEL_ISA

#endif  // RINGTAIL_DIST_COMPRESSION_KERNELS_LANES16_H_
