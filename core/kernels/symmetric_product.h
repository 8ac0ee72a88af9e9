// c = alpha a b + beta c where c is known to be symmetric: only what lies on and below the diagonal is
// computed, in strips of rows that threads can share, and mirrored.
//
//              columns                          sums of 12 x 32 elements (AVX-512) stay in registers, while
//              [panel][panel]                   a panel of 256 x 32 elements of b is in the first cache:
//   strip 0    [ * ]                            panels that are wholly above the diagonal, and rows of the
//   strip 1    [ * ][ * ]                       others that are, are left out
//
// (Goto & van de Geijn 2008, "Anatomy of high-performance matrix multiplication".)
#ifndef RINGTAIL_CORE_KERNELS_SYMMETRIC_PRODUCT_H_
#define RINGTAIL_CORE_KERNELS_SYMMETRIC_PRODUCT_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

struct SymmetricStrip {
  const float* a;  // (size, depth): row i, column d at i * a_row + d * a_column
  int64_t a_row, a_column;
  const float* b;     // (depth, size), row-major, or
  bool b_transposed;  // (size, depth)
  float* c;           // (size, size), row-major
  int64_t size, depth;
  int64_t begin, end;  // rows of c
  float alpha, beta;
};

// The order of an element's sum depends on depth alone. Where it is used for `beta`, c must be there on and
// below the diagonal.
RT_DECLARE_KERNEL(void MultiplySymmetricStrip(const SymmetricStrip& strip))

}  // namespace ringtail

#endif  // RINGTAIL_CORE_KERNELS_SYMMETRIC_PRODUCT_H_
