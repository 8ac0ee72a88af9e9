#include "core/kernels/product_speed.h"

#ifdef __AVX512F__
#include <immintrin.h>

#include "core/kernels/bfloat16.h"
#endif

namespace ringtail::RT_KERNEL_ISA {

#ifdef __AVX512F__

namespace {

// Zeros that the compiler takes for different numbers: or it would compute one sum for all.
[[gnu::always_inline]] static inline void Separate(__m512 (&sum)[16]) {
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    sum[i] = _mm512_setzero_ps();
    asm("" : "+v"(sum[i]));
  }
}

}  // namespace

RT_BF16_PRODUCTS float RunBf16Products(int64_t steps) {
  __m512 sum[16];
  Separate(sum);
  __m512i one = _mm512_set1_epi16(0x3f80);
  for (int64_t step = 0; step < steps; ++step) {
    asm("" : "+v"(one));
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) sum[i] = _mm512_dpbf16_ps(sum[i], (__m512bh)one, (__m512bh)one);
  }
  for (int i = 1; i < 16; ++i) sum[0] += sum[i];
  return sum[0][0];
}

float RunFloatProducts(int64_t steps) {
  __m512 sum[16], one = _mm512_set1_ps(1);
  Separate(sum);
  for (int64_t step = 0; step < steps; ++step) {
    asm("" : "+v"(one));
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) sum[i] = _mm512_fmadd_ps(one, one, sum[i]);
  }
  for (int i = 1; i < 16; ++i) sum[0] += sum[i];
  return sum[0][0];
}

#else

float RunBf16Products(int64_t) { __builtin_trap(); }
float RunFloatProducts(int64_t) { __builtin_trap(); }

#endif

}  // namespace ringtail::RT_KERNEL_ISA
