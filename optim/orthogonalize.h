// Approximates the orthogonal matrix nearest to a given one: U V^T of x = U S V^T. All directions
// of x become equally strong, the many weak ones like the few strong ones.
//
//   x = x / ||x||                                    Frobenius norm: no singular value above 1
//   five times:  P = a + b A + c A^2,  A = x x^T,  x = P x      a, b, c = 3.4445, -4.7750, 2.0315
//
// This applies an odd polynomial to the singular values and keeps U and V, without computing them:
// the Newton-Schulz iteration, with Jordan et al.'s coefficients (2024), which trade accuracy for
// speed. Five rounds bring every singular value of at least 1/500 of the norm to between 0.68 and
// 1.21, where 1.5, -0.5, 0 would need 14 rounds. Smaller ones grow 3.4445 times per round; zeros
// stay zero.
//
// Only matrices of the short side are iterated: since P and A commute, the next A is P A P, and all
// rounds combine into one matrix, Q = P5 P4 P3 P2 P1, which multiplies x once:
//
//   A = x x^T;   five times:  P = a + b A + c A^2,  Q = P Q,  A = P A P;   result = Q x
//
// Each of these products is a stage, and each stage has parts that several threads can share
// (core/matrix_product.h): one matrix is one thread's work, or several matrices that of all
// threads.
// The bits are the same.
//
// Thread-safety: Run of different parts of one stage on any threads, inside a ParallelFor; the rest
// one thread.
// Cost: 4 k^2 n + 34 k^3 operations, k the shorter and n the longer side, less what symmetry saves:
// all matrices but x are symmetric, 0.8 of that for 256 x 2304. Memory: 4 k^2 floats of the largest
// matrix so far.
#ifndef RINGTAIL_OPTIM_ORTHOGONALIZE_H_
#define RINGTAIL_OPTIM_ORTHOGONALIZE_H_

#include <cstdint>
#include <span>

#include "core/aligned_buffer.h"
#include "core/matrix_product.h"

namespace ringtail {

class Orthogonalization {
 public:
  static constexpr int kRounds = 5;
  static constexpr int kStages = 2 + 4 * (kRounds - 1) + 1;

  // x: rows x cols of f32, row-major, which is normalised in place; `result`: the same size, apart
  // from x. NaN and infinity spread to all elements.
  void Start(int64_t rows, int64_t cols, float* x, float* result);
  // Of a stage, 0 .. kStages - 1, which may run when all parts of the one before are done.
  int64_t parts(int stage) const;
  void Run(int stage, int64_t part) const;
  void RunAll() const;

 private:
  MatrixProduct Stage(int stage) const;
  MatrixView Square(int64_t i) const;
  MatrixView q(int round) const { return Square(2 + round % 2); }

  MatrixView x_{}, result_{};
  bool zero_ = false;      // nothing is left to do
  AlignedBuffer squares_;  // A, P, and Q of this round and of the one before
};

// All threads share the parts of all `matrices`, which have been started. Thread-safety: the
// trainer thread. Cost: a fork and join of the team for each stage.
void RunTogether(std::span<const Orthogonalization> matrices);

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_ORTHOGONALIZE_H_
