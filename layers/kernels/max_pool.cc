#include "layers/kernels/max_pool.h"

namespace ringtail::RT_KERNEL_ISA {
namespace {

// The taps of a window that lie inside the picture: [begin, end) of its kernel rows or columns.
struct Taps {
  int64_t first;  // picture row or column of tap 0; may be negative
  int64_t begin, end;
};

Taps TapsOf(int64_t window, int64_t stride, int64_t padding, int64_t kernel, int64_t size) {
  const int64_t first = window * stride - padding;
  return {first, first < 0 ? -first : 0, first + kernel > size ? size - first : kernel};
}

template <int kBlock, bool kKeepWinner, typename Winner>
void ForwardPixel(const float* src, const MaxPoolGeometry& g, const Taps& rows, const Taps& columns,
                  float* dst, Winner* winner) {
  float best[kBlock];
  int32_t best_tap[kBlock];
  const float* first =
      src + ((rows.first + rows.begin) * g.W + columns.first + columns.begin) * kBlock;
  for (int c = 0; c < kBlock; ++c) {
    best[c] = first[c];
    best_tap[c] = static_cast<int32_t>(rows.begin * g.KW + columns.begin);
  }
  for (int64_t kh = rows.begin; kh < rows.end; ++kh) {
    const float* row = src + ((rows.first + kh) * g.W + columns.first) * kBlock;
    for (int64_t kw = columns.begin; kw < columns.end; ++kw) {
      const float* x = row + kw * kBlock;
      const auto tap = static_cast<int32_t>(kh * g.KW + kw);
#pragma omp simd
      for (int c = 0; c < kBlock; ++c) {
        const bool better = (x[c] > best[c]) | (x[c] != x[c]);
        best[c] = better ? x[c] : best[c];
        best_tap[c] = better ? tap : best_tap[c];
      }
    }
  }
#pragma omp simd
  for (int c = 0; c < kBlock; ++c) dst[c] = best[c];
  if constexpr (kKeepWinner) {
#pragma omp simd
    for (int c = 0; c < kBlock; ++c) winner[c] = static_cast<Winner>(best_tap[c]);
  }
}

template <int kBlock, bool kKeepWinner, typename Winner>
void Forward(const float* src, const MaxPoolGeometry& g, float* dst, Winner* winner) {
  for (int64_t oh = 0; oh < g.OH; ++oh) {
    const Taps rows = TapsOf(oh, g.SH, g.PT, g.KH, g.H);
    for (int64_t ow = 0; ow < g.OW; ++ow) {
      const Taps columns = TapsOf(ow, g.SW, g.PL, g.KW, g.W);
      const int64_t o = (oh * g.OW + ow) * kBlock;
      ForwardPixel<kBlock, kKeepWinner>(src, g, rows, columns, dst + o,
                                        kKeepWinner ? winner + o : nullptr);
    }
  }
}

template <int kBlock, typename Winner>
void BackwardPixel(const float* diff_dst, const Winner* winner, const MaxPoolGeometry& g,
                   const Taps& rows, const Taps& columns, float* diff_src) {
  int32_t won_by[kBlock];
#pragma omp simd
  for (int c = 0; c < kBlock; ++c) won_by[c] = winner[c];
  for (int64_t kh = rows.begin; kh < rows.end; ++kh) {
    float* row = diff_src + ((rows.first + kh) * g.W + columns.first) * kBlock;
    for (int64_t kw = columns.begin; kw < columns.end; ++kw) {
      const auto tap = static_cast<int32_t>(kh * g.KW + kw);
      float* x = row + kw * kBlock;
#pragma omp simd
      for (int c = 0; c < kBlock; ++c) x[c] += won_by[c] == tap ? diff_dst[c] : 0;
    }
  }
}

// Zeroes the picture row by row just ahead of the windows, so that the row is still in the cache.
template <int kBlock, typename Winner>
void Backward(const float* diff_dst, const Winner* winner, const MaxPoolGeometry& g,
              float* diff_src) {
  int64_t zeroed = 0;  // floats
  const auto zero_until = [&](int64_t rows) {
    for (; zeroed < rows * g.W * kBlock; ++zeroed) diff_src[zeroed] = 0;
  };
  for (int64_t oh = 0; oh < g.OH; ++oh) {
    const Taps rows = TapsOf(oh, g.SH, g.PT, g.KH, g.H);
    zero_until(rows.first + rows.end);
    for (int64_t ow = 0; ow < g.OW; ++ow) {
      const Taps columns = TapsOf(ow, g.SW, g.PL, g.KW, g.W);
      const int64_t o = (oh * g.OW + ow) * kBlock;
      BackwardPixel<kBlock>(diff_dst + o, winner + o, g, rows, columns, diff_src);
    }
  }
  zero_until(g.H);
}

template <int kBlock, typename Winner>
void ForwardMaybeKeep(const float* src, const MaxPoolGeometry& g, float* dst, Winner* winner) {
  if (winner != nullptr) return Forward<kBlock, true>(src, g, dst, winner);
  Forward<kBlock, false>(src, g, dst, winner);
}

template <typename Winner>
void ForwardAnyBlock(const float* src, const MaxPoolGeometry& g, int64_t block, float* dst,
                     Winner* winner) {
  if (block == 16) return ForwardMaybeKeep<16>(src, g, dst, winner);
  if (block == 8) return ForwardMaybeKeep<8>(src, g, dst, winner);
  ForwardMaybeKeep<1>(src, g, dst, winner);
}

template <typename Winner>
void BackwardAnyBlock(const float* diff_dst, const Winner* winner, const MaxPoolGeometry& g,
                      int64_t block, float* diff_src) {
  if (block == 16) return Backward<16>(diff_dst, winner, g, diff_src);
  if (block == 8) return Backward<8>(diff_dst, winner, g, diff_src);
  Backward<1>(diff_dst, winner, g, diff_src);
}

}  // namespace

void MaxPoolForward(const float* src, const MaxPoolGeometry& g, int64_t block, float* dst,
                    uint8_t* winner) {
  ForwardAnyBlock(src, g, block, dst, winner);
}

void MaxPoolForwardWide(const float* src, const MaxPoolGeometry& g, int64_t block, float* dst,
                        int32_t* winner) {
  ForwardAnyBlock(src, g, block, dst, winner);
}

void MaxPoolBackward(const float* diff_dst, const uint8_t* winner, const MaxPoolGeometry& g,
                     int64_t block, float* diff_src) {
  BackwardAnyBlock(diff_dst, winner, g, block, diff_src);
}

void MaxPoolBackwardWide(const float* diff_dst, const int32_t* winner, const MaxPoolGeometry& g,
                         int64_t block, float* diff_src) {
  BackwardAnyBlock(diff_dst, winner, g, block, diff_src);
}

}  // namespace ringtail::RT_KERNEL_ISA
