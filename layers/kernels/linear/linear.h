// What a linear layer does beside the matrix products (linear_multiply.h, linear_few.h).
#ifndef RINGTAIL_LAYERS_KERNELS_LINEAR_LINEAR_H_
#define RINGTAIL_LAYERS_KERNELS_LINEAR_LINEAR_H_

#include <cstdint>

#include "core/kernel_isa.h"
#include "core/kernels/bfloat16.h"

namespace ringtail {

// dst[j * dst_stride + i] = src[i * src_stride + j] for i < rows, j < columns; strides in floats.
RT_DECLARE_KERNEL(void Transpose(const float* src, int64_t src_stride, int64_t rows,
                                 int64_t columns, float* dst, int64_t dst_stride))
// x = min(max(x + bias, low), high) over n floats; NaN passes through. Null bias: zeros.
RT_DECLARE_KERNEL(void AddBiasAndClamp(const float* bias, int64_t n, float low, float high,
                                       float* x))
// sum[j] = sum over i < rows, in this order, of src[i * stride + j], for j < columns. Element: float
// or Bfloat16.
RT_DECLARE_KERNEL(template <typename Element> void SumRows(const Element* src, int64_t stride,
                                                           int64_t rows, int64_t columns,
                                                           float* sum))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_LINEAR_LINEAR_H_
