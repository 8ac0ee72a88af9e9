#include "layers/kernels/bf16/bf16_dot_tiles.h"

#ifdef __AVX512F__
#include <immintrin.h>

#include "layers/kernels/bf16/bf16_dot.h"
#endif

namespace ringtail::RT_KERNEL_ISA {

#ifdef __AVX512F__

namespace {

constexpr int kRows = 8;  // at a time, with two tiles side by side: 16 sums in registers
constexpr int64_t kTileRow = kTileOutputs;

// sum += the products of a group of numbers: kRows rows, row_stride numbers apart, and one or two
// tiles of columns.
template <int kTiles>
[[gnu::always_inline]] RT_BF16_PRODUCTS static inline void AddGroup(const Bfloat16* rows,
                                                                    int64_t row_stride,
                                                                    const Bfloat16* columns,
                                                                    int64_t tile_stride,
                                                                    __m512 (&sum)[kRows][kTiles]) {
#pragma GCC unroll 1
  for (int64_t pair = 0; pair < kTileChannels / 2; ++pair, rows += 2, columns += kBf16Pair) {
    __m512bh column[kTiles];
#pragma GCC unroll 2
    for (int x = 0; x < kTiles; ++x) {
      column[x] = (__m512bh)_mm512_loadu_si512(columns + x * tile_stride);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512i row = BroadcastPair(rows + r * row_stride);
#pragma GCC unroll 2
      for (int x = 0; x < kTiles; ++x) {
        sum[r][x] = _mm512_dpbf16_ps(sum[r][x], (__m512bh)row, column[x]);
      }
    }
  }
}

template <int kTiles>
[[gnu::always_inline]] static inline void StoreSums(const __m512 (&sum)[kRows][kTiles],
                                                    int64_t tile_stride, float* to) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int x = 0; x < kTiles; ++x) {
      _mm512_storeu_ps(to + x * tile_stride + r * kTileRow, sum[r][x]);
    }
  }
}

// kRows rows of one or two tiles.
template <int kTiles>
RT_BF16_PRODUCTS void MultiplyRows(const Bf16TileGradient& p, const Bfloat16* rows, float* sums) {
  __m512 sum[kRows][kTiles];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int x = 0; x < kTiles; ++x) {
      sum[r][x] = p.accumulate ? _mm512_loadu_ps(sums + x * p.sums_column_stride + r * kTileRow)
                               : _mm512_setzero_ps();
    }
  }
  for (int64_t group = 0; group < p.groups; ++group) {
    AddGroup(rows + group * kTileChannels, p.row_stride, p.columns + group * kTileNumbers,
             p.columns_block_stride, sum);
  }
  StoreSums(sum, p.sums_column_stride, sums);
}

// kRows pixels, one or two blocks of outputs.
template <int kTiles>
RT_BF16_PRODUCTS void MultiplyPixels(const Bf16TileProduct& p, int64_t pixel) {
  __m512 sum[kRows][kTiles];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int x = 0; x < kTiles; ++x) sum[r][x] = _mm512_setzero_ps();
  }
  const Bfloat16* weight = p.weight;
  for (int64_t block = 0; block < p.channel_blocks; ++block) {
    const Bfloat16* const in = p.in + block * p.in_block_stride + pixel * p.pixel_step;
    for (int64_t tap = 0; tap < p.tap_count; ++tap, weight += kTileNumbers) {
      AddGroup(in + p.taps[tap], p.pixel_step, weight,
               p.channel_blocks * p.tap_count * kTileNumbers, sum);
    }
  }
  StoreSums(sum, p.out_block_stride, p.out + pixel * kTileOutputs);
}

}  // namespace

void MultiplyBf16DotGradient(const Bf16TileGradient& p) {
  for (int block = 0; block < p.row_blocks; ++block) {
    for (int64_t r = 0; r < kTileRow; r += kRows) {
      const Bfloat16* const rows = p.rows + block * p.rows_block_stride + r * p.row_stride;
      float* const sums = p.sums + block * p.sums_row_stride + r * kTileRow;
      if (p.column_blocks == 2) {
        MultiplyRows<2>(p, rows, sums);
      } else {
        MultiplyRows<1>(p, rows, sums);
      }
    }
  }
}

void MultiplyBf16DotTiles(const Bf16TileProduct& p) {
  for (int64_t pixel = 0; pixel < p.pixels; pixel += kRows) {
    if (p.out_blocks == 2) {
      MultiplyPixels<2>(p, pixel);
    } else {
      MultiplyPixels<1>(p, pixel);
    }
  }
}

#else

void MultiplyBf16DotGradient(const Bf16TileGradient&) { __builtin_trap(); }
void MultiplyBf16DotTiles(const Bf16TileProduct&) { __builtin_trap(); }

#endif

}  // namespace ringtail::RT_KERNEL_ISA
