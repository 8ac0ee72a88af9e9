#include "layers/kernels/max_pool.h"

#include "layers/kernels/block_elements.h"

namespace ringtail::RT_KERNEL_ISA {
namespace {

// Windows of kKernel x kKernel that lie inside the image have loops of known length, which the
// compiler unrolls; kAnyKernel stands for all other windows.
constexpr int kAnyKernel = 0;

// The taps of a window that lie inside the image: [begin, end) of its kernel rows or columns.
struct Taps {
  int64_t first;  // image row or column of tap 0; may be negative
  int64_t begin, end;
};

Taps TapsOf(int64_t window, int64_t stride, int64_t padding, int64_t kernel, int64_t size) {
  const int64_t first = window * stride - padding;
  return {first, first < 0 ? -first : 0, first + kernel > size ? size - first : kernel};
}

bool AllInside(const Taps& taps, int64_t kernel) { return taps.begin == 0 && taps.end == kernel; }

template <int kBlock, int kKernel, typename Element, typename Winner>
void ForwardPixel(const Element* src, const MaxPoolGeometry& g, const Taps& rows,
                  const Taps& columns, Element* dst, Winner* winner) {
  constexpr bool kInside = kKernel != kAnyKernel;
  const int64_t KW = kInside ? kKernel : g.KW;
  const int64_t row_begin = kInside ? 0 : rows.begin, row_end = kInside ? kKernel : rows.end;
  const int64_t begin = kInside ? 0 : columns.begin, end = kInside ? kKernel : columns.end;
  const Element* window = src + (rows.first * g.W + columns.first) * kBlock;
  float best[kBlock];
  int32_t best_tap[kBlock];
  LoadBlock<kBlock>(window + (row_begin * g.W + begin) * kBlock, best);
  for (int c = 0; c < kBlock; ++c) best_tap[c] = static_cast<int32_t>(row_begin * KW + begin);
#pragma GCC unroll 3
  for (int64_t kh = row_begin; kh < row_end; ++kh) {
#pragma GCC unroll 3
    for (int64_t kw = begin; kw < end; ++kw) {
      const Element* x = window + (kh * g.W + kw) * kBlock;
      const auto tap = static_cast<int32_t>(kh * KW + kw);
      float value[kBlock];
      LoadBlock<kBlock>(x, value);
#pragma omp simd
      for (int c = 0; c < kBlock; ++c) {
        const bool better = (value[c] > best[c]) | (value[c] != value[c]);
        best[c] = better ? value[c] : best[c];
        best_tap[c] = better ? tap : best_tap[c];
      }
    }
  }
  StoreBlock<kBlock>(best, dst);
  if (winner == nullptr) return;
#pragma omp simd
  for (int c = 0; c < kBlock; ++c) winner[c] = static_cast<Winner>(best_tap[c]);
}

template <int kBlock, int kKernel, typename Element, typename Winner>
void Forward(const Element* src, const MaxPoolGeometry& g, Element* dst, Winner* winner) {
  for (int64_t oh = 0; oh < g.OH; ++oh) {
    const Taps rows = TapsOf(oh, g.SH, g.PT, g.KH, g.H);
    for (int64_t ow = 0; ow < g.OW; ++ow) {
      const Taps columns = TapsOf(ow, g.SW, g.PL, g.KW, g.W);
      if (kKernel != kAnyKernel && AllInside(rows, kKernel) && AllInside(columns, kKernel)) {
        ForwardPixel<kBlock, kKernel>(src, g, rows, columns, dst, winner);
      } else {
        ForwardPixel<kBlock, kAnyKernel>(src, g, rows, columns, dst, winner);
      }
      dst += kBlock;
      if (winner != nullptr) winner += kBlock;
    }
  }
}

template <int kBlock, int kKernel, typename Element>
void BackwardPixel(const Element* diff_dst, const int32_t* winner, const MaxPoolGeometry& g,
                   const Taps& rows, const Taps& columns, Element* diff_src) {
  constexpr bool kInside = kKernel != kAnyKernel;
  const int64_t KW = kInside ? kKernel : g.KW;
  const int64_t row_begin = kInside ? 0 : rows.begin, row_end = kInside ? kKernel : rows.end;
  const int64_t begin = kInside ? 0 : columns.begin, end = kInside ? kKernel : columns.end;
  float diff[kBlock];
  LoadBlock<kBlock>(diff_dst, diff);
  Element* window = diff_src + (rows.first * g.W + columns.first) * kBlock;
#pragma GCC unroll 3
  for (int64_t kh = row_begin; kh < row_end; ++kh) {
#pragma GCC unroll 3
    for (int64_t kw = begin; kw < end; ++kw) {
      const auto tap = static_cast<int32_t>(kh * KW + kw);
      Element* x = window + (kh * g.W + kw) * kBlock;
      float sum[kBlock];
      LoadBlock<kBlock>(x, sum);
#pragma omp simd
      for (int c = 0; c < kBlock; ++c) sum[c] += winner[c] == tap ? diff[c] : 0;
      StoreBlock<kBlock>(sum, x);
    }
  }
}

// A row of windows. Winners are widened a strip ahead:
// pixel by pixel the narrow vectors would wait for the wide ones.
template <int kBlock, int kKernel, typename Element, typename Winner>
void BackwardRow(const Element* diff_dst, const Winner* winner, const MaxPoolGeometry& g,
                 const Taps& rows, Element* diff_src) {
  constexpr int64_t kStrip = 16;  // pixels
  int32_t wide[kStrip * kBlock];
  for (int64_t strip = 0; strip < g.OW; strip += kStrip) {
    const int64_t end = strip + kStrip < g.OW ? strip + kStrip : g.OW;
    const Winner* narrow = winner + strip * kBlock;
#pragma omp simd
    for (int64_t i = 0; i < (end - strip) * kBlock; ++i) wide[i] = narrow[i];
    for (int64_t ow = strip; ow < end; ++ow) {
      const Taps columns = TapsOf(ow, g.SW, g.PL, g.KW, g.W);
      const Element* diff = diff_dst + ow * kBlock;
      const int32_t* won_by = wide + (ow - strip) * kBlock;
      if (kKernel != kAnyKernel && AllInside(rows, kKernel) && AllInside(columns, kKernel)) {
        BackwardPixel<kBlock, kKernel>(diff, won_by, g, rows, columns, diff_src);
      } else {
        BackwardPixel<kBlock, kAnyKernel>(diff, won_by, g, rows, columns, diff_src);
      }
    }
  }
}

// Zeroes the image row by row just ahead of the windows, so that the row is still in the cache.
template <int kBlock, int kKernel, typename Element, typename Winner>
void Backward(const Element* diff_dst, const Winner* winner, const MaxPoolGeometry& g,
              Element* diff_src) {
  int64_t zeroed = 0;  // elements
  const auto zero_until = [&](int64_t row) {
    const int64_t end = row * g.W * kBlock;
#pragma omp simd
    for (int64_t i = zeroed; i < end; ++i) diff_src[i] = Element{};
    zeroed = end > zeroed ? end : zeroed;
  };
  for (int64_t oh = 0; oh < g.OH; ++oh) {
    const Taps rows = TapsOf(oh, g.SH, g.PT, g.KH, g.H);
    zero_until(rows.first + rows.end);
    const int64_t o = oh * g.OW * kBlock;
    BackwardRow<kBlock, kKernel>(diff_dst + o, winner + o, g, rows, diff_src);
  }
  zero_until(g.H);
}

template <int kBlock, typename Element, typename Winner>
void ForwardAnyKernel(const Element* src, const MaxPoolGeometry& g, Element* dst, Winner* winner) {
  if (g.KH == 2 && g.KW == 2) return Forward<kBlock, 2>(src, g, dst, winner);
  if (g.KH == 3 && g.KW == 3) return Forward<kBlock, 3>(src, g, dst, winner);
  Forward<kBlock, kAnyKernel>(src, g, dst, winner);
}

template <int kBlock, typename Element, typename Winner>
void BackwardAnyKernel(const Element* diff_dst, const Winner* winner, const MaxPoolGeometry& g,
                       Element* diff_src) {
  if (g.KH == 2 && g.KW == 2) return Backward<kBlock, 2>(diff_dst, winner, g, diff_src);
  if (g.KH == 3 && g.KW == 3) return Backward<kBlock, 3>(diff_dst, winner, g, diff_src);
  Backward<kBlock, kAnyKernel>(diff_dst, winner, g, diff_src);
}

template <typename Element, typename Winner>
void ForwardAnyBlock(const Element* src, const MaxPoolGeometry& g, int64_t block, Element* dst,
                     Winner* winner) {
  if (block == 16) return ForwardAnyKernel<16>(src, g, dst, winner);
  if (block == 8) return ForwardAnyKernel<8>(src, g, dst, winner);
  ForwardAnyKernel<1>(src, g, dst, winner);
}

template <typename Element, typename Winner>
void BackwardAnyBlock(const Element* diff_dst, const Winner* winner, const MaxPoolGeometry& g,
                      int64_t block, Element* diff_src) {
  if (block == 16) return BackwardAnyKernel<16>(diff_dst, winner, g, diff_src);
  if (block == 8) return BackwardAnyKernel<8>(diff_dst, winner, g, diff_src);
  BackwardAnyKernel<1>(diff_dst, winner, g, diff_src);
}

}  // namespace

template <typename Element>
void MaxPoolForward(const Element* src, const MaxPoolGeometry& g, int64_t block, Element* dst,
                    uint8_t* winner) {
  ForwardAnyBlock(src, g, block, dst, winner);
}

template <typename Element>
void MaxPoolForwardWide(const Element* src, const MaxPoolGeometry& g, int64_t block, Element* dst,
                        int32_t* winner) {
  ForwardAnyBlock(src, g, block, dst, winner);
}

template <typename Element>
void MaxPoolBackward(const Element* diff_dst, const uint8_t* winner, const MaxPoolGeometry& g,
                     int64_t block, Element* diff_src) {
  BackwardAnyBlock(diff_dst, winner, g, block, diff_src);
}

template <typename Element>
void MaxPoolBackwardWide(const Element* diff_dst, const int32_t* winner, const MaxPoolGeometry& g,
                         int64_t block, Element* diff_src) {
  BackwardAnyBlock(diff_dst, winner, g, block, diff_src);
}

template void MaxPoolForward(const float*, const MaxPoolGeometry&, int64_t, float*, uint8_t*);
template void MaxPoolForwardWide(const float*, const MaxPoolGeometry&, int64_t, float*, int32_t*);
template void MaxPoolBackward(const float*, const uint8_t*, const MaxPoolGeometry&, int64_t,
                              float*);
template void MaxPoolBackwardWide(const float*, const int32_t*, const MaxPoolGeometry&, int64_t,
                                  float*);
template void MaxPoolForward(const Bfloat16*, const MaxPoolGeometry&, int64_t, Bfloat16*, uint8_t*);
template void MaxPoolForwardWide(const Bfloat16*, const MaxPoolGeometry&, int64_t, Bfloat16*,
                                 int32_t*);
template void MaxPoolBackward(const Bfloat16*, const uint8_t*, const MaxPoolGeometry&, int64_t,
                              Bfloat16*);
template void MaxPoolBackwardWide(const Bfloat16*, const int32_t*, const MaxPoolGeometry&, int64_t,
                                  Bfloat16*);

}  // namespace ringtail::RT_KERNEL_ISA
