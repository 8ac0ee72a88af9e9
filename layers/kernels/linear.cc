#include "layers/kernels/linear.h"

#include "layers/kernels/linear_vec.h"

namespace ringtail::RT_KERNEL_ISA {
namespace {

// Two vectors, element by element: a0 b0 a1 b1 ..., in two halves.
#if defined(__AVX512F__)
#define RT_ZIP_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define RT_ZIP_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif defined(__AVX2__)
#define RT_ZIP_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define RT_ZIP_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#define RT_ZIP_LOW 0, 4, 1, 5
#define RT_ZIP_HIGH 2, 6, 3, 7
#endif
[[gnu::always_inline]] inline Vec ZipLow(Vec a, Vec b) {
  return __builtin_shufflevector(a, b, RT_ZIP_LOW);
}
[[gnu::always_inline]] inline Vec ZipHigh(Vec a, Vec b) {
  return __builtin_shufflevector(a, b, RT_ZIP_HIGH);
}
#undef RT_ZIP_LOW
#undef RT_ZIP_HIGH

// kLanes x kLanes. Zipping the upper with the lower half of the rows turns the bits of an element's
// (row, column) by one; after log2(kLanes) rounds row and column have changed places.
void TransposeTile(const float* src, int64_t src_stride, float* dst, int64_t dst_stride) {
  Vec row[kLanes], zipped[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) row[i] = Load(src + i * src_stride);
#pragma GCC unroll 4
  for (int round = 1; round < kLanes; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) {
      zipped[2 * i] = ZipLow(row[i], row[i + kLanes / 2]);
      zipped[2 * i + 1] = ZipHigh(row[i], row[i + kLanes / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) row[i] = zipped[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) Store(dst + i * dst_stride, row[i]);
}

}  // namespace

void Transpose(const float* src, int64_t src_stride, int64_t rows, int64_t columns, float* dst,
               int64_t dst_stride) {
  const int64_t whole_rows = rows / kLanes * kLanes, whole_columns = columns / kLanes * kLanes;
  for (int64_t j = 0; j < whole_columns; j += kLanes) {
    for (int64_t i = 0; i < whole_rows; i += kLanes) {
      TransposeTile(src + i * src_stride + j, src_stride, dst + j * dst_stride + i, dst_stride);
    }
  }
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = j < whole_columns ? whole_rows : 0; i < rows; ++i) {
      dst[j * dst_stride + i] = src[i * src_stride + j];
    }
  }
}

void AddBiasAndClamp(const float* bias, int64_t n, float low, float high, float* x) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float sum = bias != nullptr ? x[i] + bias[i] : x[i];
    const float above = sum < low ? low : sum;  // in this order NaN passes through
    x[i] = above > high ? high : above;
  }
}

void SumRows(const float* src, int64_t stride, int64_t rows, int64_t columns, float* sum) {
  for (int64_t j = 0; j < columns; ++j) sum[j] = 0;
  for (int64_t i = 0; i < rows; ++i) {
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) sum[j] += src[i * stride + j];
  }
}

}  // namespace ringtail::RT_KERNEL_ISA
