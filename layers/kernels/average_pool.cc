#include "layers/kernels/average_pool.h"

namespace ringtail::RT_KERNEL_ISA {
namespace {

float Share(const PoolSpan& rows, const PoolSpan& columns) {
  return 1 / (static_cast<float>(rows.count) * static_cast<float>(columns.count));
}

// sum[c] += the columns of one row.
template <int kBlock, typename Element>
void AddRow(const Element* row, const PoolSpan& columns, float* sum) {
  if constexpr (kBlock == 1) {
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t w = columns.begin; w < columns.end; ++w) total += Widen(row[w]);
    sum[0] += total;
  } else {
    for (int64_t w = columns.begin; w < columns.end; ++w) {
#pragma omp simd
      for (int c = 0; c < kBlock; ++c) sum[c] += Widen(row[w * kBlock + c]);
    }
  }
}

template <int kBlock, typename Element>
void Forward(const Element* src, const AveragePoolGeometry& g, Element* dst) {
  for (int64_t oh = 0; oh < g.OH; ++oh) {
    const PoolSpan rows = g.rows[oh];
    for (int64_t ow = 0; ow < g.OW; ++ow) {
      const PoolSpan columns = g.columns[ow];
      float sum[kBlock] = {};
      for (int64_t h = rows.begin; h < rows.end; ++h) {
        AddRow<kBlock>(src + h * g.W * kBlock, columns, sum);
      }
      const float share = Share(rows, columns);
      Element* out = dst + (oh * g.OW + ow) * kBlock;
#pragma omp simd
      for (int c = 0; c < kBlock; ++c) out[c] = NarrowTo<Element>(sum[c] * share);
    }
  }
}

// Zeroes the image row by row just ahead of the windows, so that the row is still in the cache.
template <int kBlock, typename Element>
void Backward(const Element* diff_dst, const AveragePoolGeometry& g, Element* diff_src) {
  int64_t zeroed = 0;  // elements
  const auto zero_until = [&](int64_t row) {
    const int64_t end = row * g.W * kBlock;
#pragma omp simd
    for (int64_t i = zeroed; i < end; ++i) diff_src[i] = Element{};
    zeroed = end > zeroed ? end : zeroed;
  };
  for (int64_t oh = 0; oh < g.OH; ++oh) {
    const PoolSpan rows = g.rows[oh];
    zero_until(rows.end);
    for (int64_t ow = 0; ow < g.OW; ++ow) {
      const PoolSpan columns = g.columns[ow];
      const float share = Share(rows, columns);
      const Element* in = diff_dst + (oh * g.OW + ow) * kBlock;
      float diff[kBlock];
#pragma omp simd
      for (int c = 0; c < kBlock; ++c) diff[c] = Widen(in[c]) * share;
      for (int64_t h = rows.begin; h < rows.end; ++h) {
        for (int64_t w = columns.begin; w < columns.end; ++w) {
          Element* out = diff_src + (h * g.W + w) * kBlock;
#pragma omp simd
          for (int c = 0; c < kBlock; ++c) out[c] = NarrowTo<Element>(Widen(out[c]) + diff[c]);
        }
      }
    }
  }
  zero_until(g.H);
}

}  // namespace

template <typename Element>
void AveragePoolForward(const Element* src, const AveragePoolGeometry& g, int64_t block,
                        Element* dst) {
  if (block == 16) return Forward<16>(src, g, dst);
  if (block == 8) return Forward<8>(src, g, dst);
  Forward<1>(src, g, dst);
}

template <typename Element>
void AveragePoolBackward(const Element* diff_dst, const AveragePoolGeometry& g, int64_t block,
                         Element* diff_src) {
  if (block == 16) return Backward<16>(diff_dst, g, diff_src);
  if (block == 8) return Backward<8>(diff_dst, g, diff_src);
  Backward<1>(diff_dst, g, diff_src);
}

template void AveragePoolForward(const float*, const AveragePoolGeometry&, int64_t, float*);
template void AveragePoolBackward(const float*, const AveragePoolGeometry&, int64_t, float*);
template void AveragePoolForward(const Bfloat16*, const AveragePoolGeometry&, int64_t, Bfloat16*);
template void AveragePoolBackward(const Bfloat16*, const AveragePoolGeometry&, int64_t, Bfloat16*);

}  // namespace ringtail::RT_KERNEL_ISA
