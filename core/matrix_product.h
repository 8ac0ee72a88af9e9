// c = alpha op(a) op(b) + beta c for dense row-major matrices: of f32 on oneDNN's sgemm or, where c is
// symmetric, on a kernel that leaves out what lies above the diagonal; of pairs of bfloat16 always on that
// kernel (core/kernels/product_block.h), in parts that several threads may compute at the same time:
//
//   slices of 512 along c's longer side      strips of 64 rows of a c that is known to be symmetric
//       c  [  0  |  1  |  2  | 3 ]               c  [0]
//                                                   [1 1]       computed up to the diagonal,
//                                                   [2 2 2]     and mirrored
//
// Parts depend on c's shape alone and write different elements, so the bits are the same whichever
// threads compute them.
// A library target of its own (ringtail_matrix_product in CMakeLists.txt): folders that multiply
// matrices link it and do not see oneDNN, which is otherwise confined to layers/.
// Thread-safety: any thread; unlike oneDNN's primitives, sgemm keeps no state between calls. Called
// from inside a ParallelFor it runs on that thread alone. Bits: the same for any number of threads
// only when called that way. Cost: 2 rows cols depth operations; 0.56 of that for 256 rows of a
// symmetric c. (Compared with sgemm over the same strips, one core of a Zen 5, median time: 0.92 of it
// for 256 x 256 times 256 x 256, 0.81 for 256 x 2304 times its transpose, 0.75 for 128 x 1152.)
#ifndef RINGTAIL_CORE_MATRIX_PRODUCT_H_
#define RINGTAIL_CORE_MATRIX_PRODUCT_H_

#include <cstdint>

namespace ringtail {

struct MatrixView {
  float* data;
  int64_t rows, cols;  // row-major, without gaps
};

enum class Operand { kAsIs, kTransposed };

struct MatrixProduct {
  MatrixView a, b;  // op(a): (c.rows, depth), op(b): (depth, c.cols)
  MatrixView c;     // overlaps neither
  Operand op_a = Operand::kAsIs, op_b = Operand::kAsIs;
  float alpha = 1, beta = 0;
  // c is known to be symmetric, as x x^T, and as the product of two symmetric matrices that
  // commute: what lies above the blocks on the diagonal is mirrored, so that c is symmetric to the
  // last bit. Only the part below has to be there for `beta`.
  bool symmetric = false;
  // a and b are of pairs of bfloat16 numbers (core/kernels/product_block.h), each in the place of a float: their
  // rows and columns are counted in pairs along the depth. Only where HasBf16Products().
  bool pairs = false;
};

int64_t NumParts(const MatrixProduct& product);
void MultiplyPart(const MatrixProduct& product, int64_t part);
void Multiply(const MatrixProduct& product);  // all parts, one after the other

// The rows [begin, end) of a strip of a symmetric c. The strip itself is columns [0, end) of them.
struct StripRows {
  int64_t begin, end;
};
StripRows RowsOfStrip(const MatrixProduct& product, int64_t part);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MATRIX_PRODUCT_H_
