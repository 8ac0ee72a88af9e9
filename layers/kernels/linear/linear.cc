#include "layers/kernels/linear/linear.h"

#include "layers/kernels/clamp.h"
#include "layers/kernels/linear/linear_vec.h"

namespace ringtail::RT_KERNEL_ISA {
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
    x[i] = Clamped(bias != nullptr ? x[i] + bias[i] : x[i], low, high);
  }
}

template <typename Element>
void SumRows(const Element* src, int64_t stride, int64_t rows, int64_t columns, float* sum) {
  for (int64_t j = 0; j < columns; ++j) sum[j] = 0;
  for (int64_t i = 0; i < rows; ++i) {
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) sum[j] += Widen(src[i * stride + j]);
  }
}
template void SumRows(const float*, int64_t, int64_t, int64_t, float*);
template void SumRows(const Bfloat16*, int64_t, int64_t, int64_t, float*);

}  // namespace ringtail::RT_KERNEL_ISA
