// The matrix products of a linear layer of few samples, or of few outputs: too little arithmetic
// per weight to pay for packing (linear_multiply.h). They read the weights as they lie, at the
// speed of memory.
#ifndef RINGTAIL_LAYERS_KERNELS_LINEAR_LINEAR_FEW_H_
#define RINGTAIL_LAYERS_KERNELS_LINEAR_LINEAR_FEW_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

// Dot products of rows: c (rows, columns) = a (rows, depth) times b (columns, depth) transposed.
// All are row-major without gaps. Forward: c = dst^T, a = weight, b = src.
struct RowDots {
  const float *a, *b;
  float* c;
  int64_t rows, columns, depth;
};
RT_DECLARE_KERNEL(void MultiplyRowDots(const RowDots& dots))

// c (rows, columns) = a (rows, depth) b (depth, columns), row-major without gaps, for few rows or
// little depth; columns [begin, end) of it. Backward-data: c = diff_src, a = diff_dst, b = weight.
// Backward-weights of few outputs: c = diff_weight, a = diff_dst^T, b = src.
struct FewRowsProduct {
  const float *a, *b;
  float* c;
  int64_t rows, depth, columns;
};
RT_DECLARE_KERNEL(void MultiplyFewRows(const FewRowsProduct& product, int64_t begin, int64_t end))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_LINEAR_LINEAR_FEW_H_
