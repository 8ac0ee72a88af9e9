#include "layers/kernels/bf16_products.h"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace ringtail::RT_KERNEL_ISA {

#ifdef __AVX512F__

namespace {

#define RT_BF16_PRODUCTS __attribute__((target("avx512bf16")))

constexpr int64_t kLanes = kBf16ProductLanes, kRows = kBf16ProductRows;
constexpr int64_t kPair = 2 * kLanes;  // numbers of an interleaved pair: a register

// kRows rows of one channel block, kBlocks blocks of columns.
template <int kBlocks>
RT_BF16_PRODUCTS void MultiplyTile(const Bf16GradientProduct& p, const Bfloat16* rows,
                                   const Bfloat16* columns, float* to) {
  __m512 sum[kRows][kBlocks];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 3
    for (int b = 0; b < kBlocks; ++b) {
      sum[r][b] =
          p.accumulate ? _mm512_loadu_ps(to + r * p.sum_stride + b * kLanes) : _mm512_setzero_ps();
    }
  }
#pragma GCC unroll 1
  for (int64_t pair = 0; pair < p.pairs; ++pair) {
    __m512bh column[kBlocks];
#pragma GCC unroll 3
    for (int b = 0; b < kBlocks; ++b) {
      column[b] = (__m512bh)_mm512_loadu_si512(columns + b * p.columns_block_stride + pair * kPair);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      int32_t two;
      __builtin_memcpy(&two, rows + pair * kPair + 2 * r, sizeof(two));
      __m512i row = _mm512_set1_epi32(two);
      asm("" : "+v"(row));  // one broadcast for all blocks
#pragma GCC unroll 3
      for (int b = 0; b < kBlocks; ++b) {
        sum[r][b] = _mm512_dpbf16_ps(sum[r][b], (__m512bh)row, column[b]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 3
    for (int b = 0; b < kBlocks; ++b) {
      _mm512_storeu_ps(to + r * p.sum_stride + b * kLanes, sum[r][b]);
    }
  }
}

template <int kBlocks>
RT_BF16_PRODUCTS void MultiplyColumns(const Bf16GradientProduct& p, int64_t block) {
  const Bfloat16* columns = p.columns + block * p.columns_block_stride;
  for (int64_t r = 0; r < p.row_channels; r += kRows) {
    const Bfloat16* rows = p.rows + r / kLanes * p.rows_block_stride + 2 * (r % kLanes);
    MultiplyTile<kBlocks>(p, rows, columns, p.sum + r * p.sum_stride + block * kLanes);
  }
}

}  // namespace

bool HasBf16Products() { return __builtin_cpu_supports("avx512bf16") != 0; }

RT_BF16_PRODUCTS void MultiplyBf16Gradient(const Bf16GradientProduct& product) {
  constexpr int kMostBlocks = 3;
  int64_t block = 0;
  for (; block + kMostBlocks <= product.column_blocks; block += kMostBlocks) {
    MultiplyColumns<kMostBlocks>(product, block);
  }
  if (product.column_blocks - block == 2) MultiplyColumns<2>(product, block);
  if (product.column_blocks - block == 1) MultiplyColumns<1>(product, block);
}

void InterleaveBf16Pixels(const Bfloat16* from, int64_t pixels, Bfloat16* to) {
  alignas(64) uint16_t order[kPair];
  for (int i = 0; i < kPair; ++i) order[i] = static_cast<uint16_t>(i % 2 * kLanes + i / 2);
  const __m512i index = _mm512_load_si512(order);
  int64_t p = 0;
  for (; p + 2 <= pixels; p += 2) {
    const __m512i two = _mm512_loadu_si512(from + p * kLanes);
    _mm512_storeu_si512(to + p * kLanes, _mm512_permutexvar_epi16(index, two));
  }
  if (p == pixels) return;
  const __m512i one = _mm512_maskz_loadu_epi16(0xffff, from + p * kLanes);  // beside zeros
  _mm512_storeu_si512(to + p * kLanes, _mm512_permutexvar_epi16(index, one));
}

#else

bool HasBf16Products() { return false; }
void MultiplyBf16Gradient(const Bf16GradientProduct&) { __builtin_trap(); }
void InterleaveBf16Pixels(const Bfloat16*, int64_t, Bfloat16*) { __builtin_trap(); }

#endif

}  // namespace ringtail::RT_KERNEL_ISA
