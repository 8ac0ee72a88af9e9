#include "layers/kernels/average_pool.h"

namespace ringtail::RT_KERNEL_ISA {
namespace {

float Share(const PoolSpan& rows, const PoolSpan& columns) {
  return 1 / (static_cast<float>(rows.count) * static_cast<float>(columns.count));
}

// sum[c] += the columns of one row.
template <int kBlock>
void AddRow(const float* row, const PoolSpan& columns, float* sum) {
  if constexpr (kBlock == 1) {
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t w = columns.begin; w < columns.end; ++w) total += row[w];
    sum[0] += total;
  } else {
    for (int64_t w = columns.begin; w < columns.end; ++w) {
#pragma omp simd
      for (int c = 0; c < kBlock; ++c) sum[c] += row[w * kBlock + c];
    }
  }
}

template <int kBlock>
void Forward(const float* src, const AveragePoolGeometry& g, float* dst) {
  for (int64_t oh = 0; oh < g.OH; ++oh) {
    const PoolSpan rows = g.rows[oh];
    for (int64_t ow = 0; ow < g.OW; ++ow) {
      const PoolSpan columns = g.columns[ow];
      float sum[kBlock] = {};
      for (int64_t h = rows.begin; h < rows.end; ++h) {
        AddRow<kBlock>(src + h * g.W * kBlock, columns, sum);
      }
      const float share = Share(rows, columns);
      float* out = dst + (oh * g.OW + ow) * kBlock;
#pragma omp simd
      for (int c = 0; c < kBlock; ++c) out[c] = sum[c] * share;
    }
  }
}

// Zeroes the image row by row just ahead of the windows, so that the row is still in the cache.
template <int kBlock>
void Backward(const float* diff_dst, const AveragePoolGeometry& g, float* diff_src) {
  int64_t zeroed = 0;  // floats
  const auto zero_until = [&](int64_t row) {
    const int64_t end = row * g.W * kBlock;
#pragma omp simd
    for (int64_t i = zeroed; i < end; ++i) diff_src[i] = 0;
    zeroed = end > zeroed ? end : zeroed;
  };
  for (int64_t oh = 0; oh < g.OH; ++oh) {
    const PoolSpan rows = g.rows[oh];
    zero_until(rows.end);
    for (int64_t ow = 0; ow < g.OW; ++ow) {
      const PoolSpan columns = g.columns[ow];
      const float share = Share(rows, columns);
      const float* in = diff_dst + (oh * g.OW + ow) * kBlock;
      float diff[kBlock];
#pragma omp simd
      for (int c = 0; c < kBlock; ++c) diff[c] = in[c] * share;
      for (int64_t h = rows.begin; h < rows.end; ++h) {
        for (int64_t w = columns.begin; w < columns.end; ++w) {
          float* out = diff_src + (h * g.W + w) * kBlock;
#pragma omp simd
          for (int c = 0; c < kBlock; ++c) out[c] += diff[c];
        }
      }
    }
  }
  zero_until(g.H);
}

}  // namespace

void AveragePoolForward(const float* src, const AveragePoolGeometry& g, int64_t block, float* dst) {
  if (block == 16) return Forward<16>(src, g, dst);
  if (block == 8) return Forward<8>(src, g, dst);
  Forward<1>(src, g, dst);
}

void AveragePoolBackward(const float* diff_dst, const AveragePoolGeometry& g, int64_t block,
                         float* diff_src) {
  if (block == 16) return Backward<16>(diff_dst, g, diff_src);
  if (block == 8) return Backward<8>(diff_dst, g, diff_src);
  Backward<1>(diff_dst, g, diff_src);
}

}  // namespace ringtail::RT_KERNEL_ISA
