// What kernels of bfloat16 products share: the instruction that multiplies pairs (vdpbf16ps) in the
// register block of a matrix product, and those that round to bfloat16. A function that uses them
// says RT_BF16_PRODUCTS and is called only where HasBf16Products() says yes (core/kernels/bfloat16.h).
// Numerics: as bf16_products.h says. Only for layers/kernels/*.cc, where __AVX512F__ is defined.
#ifndef RINGTAIL_LAYERS_KERNELS_BF16_BF16_DOT_H_
#define RINGTAIL_LAYERS_KERNELS_BF16_BF16_DOT_H_

#include <immintrin.h>

#include <cstdint>

#include "core/kernels/bfloat16.h"
#include "layers/kernels/vec_bfloat16.h"

namespace ringtail::RT_KERNEL_ISA {

constexpr int kBf16Lanes = kLanes;
constexpr int kBf16Pair = 2 * kLanes;  // numbers in a register

// Two numbers that lie side by side, in all lanes. One broadcast, however often it is used.
[[gnu::always_inline]] static inline __m512i BroadcastPair(const Bfloat16* p) {
  int32_t two;
  __builtin_memcpy(&two, p, sizeof(two));
  __m512i pair = _mm512_set1_epi32(two);
  asm("" : "+v"(pair));
  return pair;
}

// sum[row][x] += the products of one pair of channels: pixels + row * step, and kVecs registers of
// weights.
template <int kRows, int kVecs>
[[gnu::always_inline]] RT_BF16_PRODUCTS static inline void AddPair(const Bfloat16* pixels,
                                                                   const Bfloat16* weight,
                                                                   __m512 (&sum)[kRows][kVecs],
                                                                   int64_t step = kLanes) {
  __m512bh w[kVecs];
#pragma GCC unroll 3
  for (int x = 0; x < kVecs; ++x) w[x] = (__m512bh)_mm512_loadu_si512(weight + x * kBf16Pair);
#pragma GCC unroll 14
  for (int row = 0; row < kRows; ++row) {
    const __m512i pair = BroadcastPair(pixels + row * step);
#pragma GCC unroll 3
    for (int x = 0; x < kVecs; ++x) {
      sum[row][x] = _mm512_dpbf16_ps(sum[row][x], (__m512bh)pair, w[x]);
    }
  }
}

// Rounded to nearest even, as Narrow does (core/kernels/bfloat16.h), but for subnormal numbers, which
// become 0. By name: the compilers know the instructions only in functions that ask for AVX512-BF16,
// which a lambda cannot.
[[gnu::always_inline]] static inline __m512i RoundTwo(Vec low, Vec high) {
  __m512i rounded;
  asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(rounded) : "v"(low), "v"(high));
  return rounded;
}
[[gnu::always_inline]] static inline __m256i RoundOne(Vec v) {
  __m256i rounded;
  asm("vcvtneps2bf16 %1, %0" : "=v"(rounded) : "v"(v));
  return rounded;
}

// Puts the halves of a register side by side, number by number: [2][lane] to [lane][2].
[[gnu::always_inline]] static inline __m512i PairIndex() {
  alignas(64) uint16_t order[kBf16Pair];
  for (int i = 0; i < kBf16Pair; ++i) order[i] = static_cast<uint16_t>(i % 2 * kLanes + i / 2);
  return _mm512_load_si512(order);
}
[[gnu::always_inline]] static inline __m512i Interleaved(__m512i index, __m512i halves) {
  return _mm512_permutexvar_epi16(index, halves);
}

// Rounds the pixels of one block and stores them; sum[row] becomes what is stored.
template <int kRows>
[[gnu::always_inline]] static inline void RoundAndStore(Vec (&sum)[kRows], Bfloat16* to) {
#pragma GCC unroll 7
  for (int row = 0; row + 2 <= kRows; row += 2) {
    const __m512i two = RoundTwo(sum[row], sum[row + 1]);
    _mm512_storeu_si512(to + row * kLanes, two);
    HalfBits half[2];
    __builtin_memcpy(half, &two, sizeof(half));
    sum[row] = reinterpret_cast<Vec>(__builtin_convertvector(half[0], VecBits) << 16);
    sum[row + 1] = reinterpret_cast<Vec>(__builtin_convertvector(half[1], VecBits) << 16);
  }
  if constexpr (kRows % 2 == 1) {
    const __m256i one = RoundOne(sum[kRows - 1]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + (kRows - 1) * kLanes), one);
    const HalfBits half = reinterpret_cast<HalfBits>(one);
    sum[kRows - 1] = reinterpret_cast<Vec>(__builtin_convertvector(half, VecBits) << 16);
  }
}

}  // namespace ringtail::RT_KERNEL_ISA

#endif  // RINGTAIL_LAYERS_KERNELS_BF16_BF16_DOT_H_
