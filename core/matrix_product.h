// c = alpha op(a) op(b) + beta c for dense row-major f32 matrices, on oneDNN's sgemm.
//
// A library target of its own (ringtail_matrix_product in CMakeLists.txt): folders that multiply
// matrices link it and do not see oneDNN, which is otherwise confined to layers/.
// Thread-safety: any thread; unlike oneDNN's primitives, sgemm keeps no state between calls. Called
// from inside a ParallelFor it runs on that thread alone. Bits: the same for any number of threads
// only when called that way. Cost: 2 rows cols depth operations.
#ifndef RINGTAIL_CORE_MATRIX_PRODUCT_H_
#define RINGTAIL_CORE_MATRIX_PRODUCT_H_

#include <cstdint>

namespace ringtail {

struct MatrixView {
  float* data;
  int64_t rows, cols;  // row-major, without gaps
};

enum class Operand { kAsIs, kTransposed };

// op(a): (c.rows, depth), op(b): (depth, c.cols). `c` overlaps neither.
void MultiplyMatrices(float alpha, Operand op_a, const MatrixView& a, Operand op_b,
                      const MatrixView& b, float beta, const MatrixView& c);

// The same where the result is known to be symmetric, as x x^T, and as the product of two symmetric
// matrices that commute: computes what lies below the diagonal and in the blocks on it, and mirrors
// it, so c is symmetric to the last bit. Only that part of c has to be there for `beta`.
// Cost: about 5/8 of the operations above for 256 rows, less for more.
void MultiplyToSymmetric(float alpha, const MatrixView& a, Operand op_b, const MatrixView& b,
                         float beta, const MatrixView& c);
// For x^T x.
void MultiplyTransposedToSymmetric(const MatrixView& x, const MatrixView& c);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MATRIX_PRODUCT_H_
