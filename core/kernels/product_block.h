// A block of c = alpha a b + beta c, in f32 or of pairs of bfloat16 numbers; of a symmetric c only what
// lies on and below the diagonal is computed, in strips of rows that threads can share, and mirrored.
//
//              columns                          sums of 12 x 32 elements (AVX-512) stay in registers, while
//              [panel][panel]                   a panel of 256 x 32 elements of b is in the first cache:
//   strip 0    [ * ]                            panels that are wholly above the diagonal, and rows of the
//   strip 1    [ * ][ * ]                       others that are, are left out
//
// (Goto & van de Geijn 2008, "Anatomy of high-performance matrix multiplication".)
//
// Pairs: two numbers that are neighbours in the depth take the place of a float in a and b, the first in its
// lower half, and their products are added in one instruction (vdpbf16ps), in twice the speed of f32. Only
// where HasBf16Products(). Numerics: products are exact; each addition rounds to nearest even; subnormal
// numbers count as 0.
#ifndef RINGTAIL_CORE_KERNELS_PRODUCT_BLOCK_H_
#define RINGTAIL_CORE_KERNELS_PRODUCT_BLOCK_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

struct ProductBlock {
  const float* a;  // row i, column d at i * a_row + d * a_column
  int64_t a_row, a_column;
  const float* b;     // (depth, columns of c), row-major, or
  bool b_transposed;  // (columns of c, depth)
  int64_t b_row;      // from one row of b to the next
  float* c;           // row-major
  int64_t c_row;
  int64_t depth;        // floats or pairs
  int64_t begin, end;   // rows of c
  int64_t left, right;  // columns of c
  bool symmetric;       // c is: left = 0, right is c's size
  bool pairs;           // a and b are
  float alpha, beta;
};

// The order of an element's sum depends on depth alone. Where it is used for `beta`, c must be there; of a
// symmetric c what is on and below the diagonal.
RT_DECLARE_KERNEL(void MultiplyProductBlock(const ProductBlock& block))

}  // namespace ringtail

#endif  // RINGTAIL_CORE_KERNELS_PRODUCT_BLOCK_H_
