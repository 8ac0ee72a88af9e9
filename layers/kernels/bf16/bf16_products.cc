#include "layers/kernels/bf16/bf16_products.h"

#ifdef __AVX512F__
#include "layers/kernels/bf16/bf16_dot.h"
#include "layers/kernels/vec_affine.h"
#include "layers/kernels/vec_bfloat16.h"
#endif

namespace ringtail::RT_KERNEL_ISA {

#ifdef __AVX512F__

namespace {

constexpr int64_t kRows = kBf16ProductRows;
constexpr int64_t kPair = kBf16Pair;
constexpr int kPixels = 12;  // at a time, with two blocks of outputs: 24 sums in registers

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
      const __m512i row = BroadcastPair(rows + pair * kPair + 2 * r);
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

template <int kCount, int kVecs>
RT_BF16_PRODUCTS void MultiplyPixels(const Bf16Product& p, int64_t first) {
  __m512 sum[kCount][kVecs];
#pragma GCC unroll 12
  for (int row = 0; row < kCount; ++row) {
#pragma GCC unroll 2
    for (int x = 0; x < kVecs; ++x) sum[row][x] = _mm512_setzero_ps();
  }
  const Bfloat16* in = p.in + first * kLanes;
  const Bfloat16* weight = p.weight;
  for (int64_t block = 0; block < p.channel_blocks; ++block, in += p.in_block_stride) {
#pragma GCC unroll 1
    for (int lane = 0; lane < kLanes; lane += 2, weight += kVecs * kPair) {
      AddPair(in + lane, weight, sum);
    }
  }
  float* out = p.out + first * kLanes;
#pragma GCC unroll 12
  for (int row = 0; row < kCount; ++row) {
#pragma GCC unroll 2
    for (int x = 0; x < kVecs; ++x) {
      _mm512_storeu_ps(out + x * p.out_block_stride + row * kLanes, sum[row][x]);
    }
  }
}

// The last pixels, fewer than kPixels.
template <int kCount, int kVecs>
void MultiplyRest(const Bf16Product& p, int64_t first, int64_t count) {
  if (count == kCount) return MultiplyPixels<kCount, kVecs>(p, first);
  if constexpr (kCount > 1) MultiplyRest<kCount - 1, kVecs>(p, first, count);
}

template <int kVecs>
void MultiplyPanel(const Bf16Product& p) {
  int64_t first = 0;
  for (; first + kPixels <= p.pixels; first += kPixels) MultiplyPixels<kPixels, kVecs>(p, first);
  if (first < p.pixels) MultiplyRest<kPixels - 1, kVecs>(p, first, p.pixels - first);
}

}  // namespace

void MultiplyBf16(const Bf16Product& product) {
  if (product.panel_blocks == 2) return MultiplyPanel<2>(product);
  MultiplyPanel<1>(product);
}

RT_BF16_PRODUCTS void MultiplyBf16Gradient(const Bf16GradientProduct& product) {
  for (int64_t block = 0; block < product.column_blocks;) {
    // One block alone would leave the multipliers waiting for its few sums.
    const int64_t left = product.column_blocks - block;
    const int blocks = left == 4 || left == 2 ? 2 : left == 1 ? 1 : 3;
    if (blocks == 3) MultiplyColumns<3>(product, block);
    if (blocks == 2) MultiplyColumns<2>(product, block);
    if (blocks == 1) MultiplyColumns<1>(product, block);
    block += blocks;
  }
}

void InterleaveBf16Pixels(const Bfloat16* from, int64_t pixels, Bfloat16* to) {
  const __m512i index = PairIndex();
  int64_t p = 0;
  for (; p + 2 <= pixels; p += 2) {
    const __m512i two = _mm512_loadu_si512(from + p * kLanes);
    _mm512_storeu_si512(to + p * kLanes, Interleaved(index, two));
  }
  if (p == pixels) return;
  const __m512i one = _mm512_maskz_loadu_epi16(0xffff, from + p * kLanes);  // beside zeros
  _mm512_storeu_si512(to + p * kLanes, Interleaved(index, one));
}

void InterleaveMappedBf16Pixels(const Bfloat16* from, int64_t pixels, const ChannelAffine& affine,
                                Bfloat16* to) {
  const __m512i index = PairIndex();
  const VecAffine map(affine);
  for (int64_t p = 0; p < pixels; p += 2) {
    const Vec first = map(Load(from + p * kLanes));
    const Vec second = p + 1 < pixels ? map(Load(from + (p + 1) * kLanes)) : Vec{};
    _mm512_storeu_si512(to + p * kLanes, Interleaved(index, RoundTwo(first, second)));
  }
}

#else

void MultiplyBf16(const Bf16Product&) { __builtin_trap(); }
void MultiplyBf16Gradient(const Bf16GradientProduct&) { __builtin_trap(); }
void InterleaveBf16Pixels(const Bfloat16*, int64_t, Bfloat16*) { __builtin_trap(); }
void InterleaveMappedBf16Pixels(const Bfloat16*, int64_t, const ChannelAffine&, Bfloat16*) {
  __builtin_trap();
}

#endif

}  // namespace ringtail::RT_KERNEL_ISA
