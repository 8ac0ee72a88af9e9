// The matrix products of a linear layer of many samples (linear_few.h: of few). Its weights are far
// larger than the caches; here they go through them once, and come from memory while the products
// before them are computed.
//
//   direction          product                                              the large matrix
//   forward            dst^T (M, N) = weight (M, K) src^T (K, N)            a
//   backward-data      diff_src (N, K) = diff_dst (N, M) weight (M, K)      b
//   backward-weights   diff_weight (M, K) = diff_dst^T (M, N) src (N, K)    c
#ifndef RINGTAIL_LAYERS_KERNELS_LINEAR_LINEAR_MULTIPLY_H_
#define RINGTAIL_LAYERS_KERNELS_LINEAR_LINEAR_MULTIPLY_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

// c = a b, all of them row-major. Strides are floats between rows.
struct MatrixProduct {
  const float* a;  // (rows, depth)
  int64_t a_stride;
  const float* b;  // (depth, columns)
  int64_t b_stride;
  float* c;  // (rows, columns)
  int64_t c_stride;
  int64_t rows, depth, columns;
  // Write c around the caches, because it is not read soon: saves reading the lines first. Requires
  // c at a multiple of 64 bytes, c_stride and columns multiples of 16. Only for MultiplyLargeAOrC.
  bool stream_c = false;
};

// For a large a or c, and for a large b. Each element of c is a sum in an order that depends on
// `depth` alone: however rows and columns are split into products, the bits are the same.
// `scratch`: MultiplyScratchFloats() floats, 64-byte aligned.
RT_DECLARE_KERNEL(void MultiplyLargeAOrC(const MatrixProduct& product, float* scratch))
RT_DECLARE_KERNEL(void MultiplyLargeB(const MatrixProduct& product, float* scratch))
RT_DECLARE_KERNEL(int64_t MultiplyScratchFloats())

// Rows and columns that are computed at a time: a split should be at multiples of them.
RT_DECLARE_KERNEL(int64_t MultiplyRows())
RT_DECLARE_KERNEL(int64_t MultiplyColumns())

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_LINEAR_LINEAR_MULTIPLY_H_
