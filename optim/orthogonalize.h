// Approximates the orthogonal matrix nearest to a given one: U V^T of x = U S V^T. All directions
// of x become equally strong, the many weak ones like the few strong ones.
//
//   x = x / ||x||                                    Frobenius norm: no singular value above 1
//   four times:  P = a + b A + c A^2,  A = x x^T,  x = P x
//
//   round     a        b         c         singular values, of at least 1/500 at first, are then within
//     1     8.3853  -24.5675  18.0384      0.017 .. 1.97
//     2     4.0936   -3.0159   0.5612      0.068 .. 1.93
//     3     3.7086   -2.7477   0.5314      0.25 .. 1.75
//     4     2.7981   -2.0729   0.4573      0.67 .. 1.33
//
// This applies an odd polynomial to the singular values and keeps U and V, without computing them:
// the Newton-Schulz iteration. In each round the polynomial is the one of degree 5 that is closest to 1
// over what the round before has left (and half a percent beyond, for rounding), which together is the
// best there is (Amsel, Persson, Musco & Gower 2025, arXiv 2505.16932, "The Polar Express", theorem 3.1;
// here for 1/500, by Remez' exchange).
// One polynomial for all rounds needs five of them (3.4445, -4.7750, 2.0315: 0.68 .. 1.21; Jordan et al.
// 2024), 1.5, -0.5, 0 needs 14. Singular values below 1/500 grow 356 times; zeros stay zero.
//
// Only matrices of the short side are iterated: since P and A commute, the next A is P A P, and all
// rounds combine into one matrix, Q = P4 P3 P2 P1, which multiplies x once:
//
//   A = x x^T;   four times:  P = a + b A + c A^2,  Q = P Q,  A = P A P;   result = Q x
//
// Numbers::kBfloat16: x, and Q before the last product, are rounded to bfloat16, as all of Jordan et al.'s iteration
// is, and the two products with x take half the time. A is then that of the rounded x exactly, but for the
// rounding of f32, so that no eigenvalue is below zero by more than with f32; in rounds with rounded
// operands they would be, and grow without bound.
//
// Each of these products is a stage, and each stage has parts that several threads can share
// (core/matrix_product.h): one matrix is one thread's work, or several matrices that of all
// threads.
// The bits are the same.
//
// Thread-safety: Run of different parts of one stage on any threads, inside a ParallelFor; the rest
// one thread.
// Cost: 4 k^2 n + 26 k^3 operations, k the shorter and n the longer side, less what symmetry saves:
// all matrices but x are symmetric, 0.8 of that for 256 x 2304. Memory: 4 k^2 floats of the largest
// matrix so far, and with kBfloat16 k n + k^2 / 2 more.
#ifndef RINGTAIL_OPTIM_ORTHOGONALIZE_H_
#define RINGTAIL_OPTIM_ORTHOGONALIZE_H_

#include <cstdint>
#include <span>

#include "core/aligned_buffer.h"
#include "core/matrix_product.h"

namespace ringtail {

class Orthogonalization {
 public:
  static constexpr int kRounds = 4;
  static constexpr int kStages = 3 + 4 * (kRounds - 1) + 2;
  enum class Numbers { kFloat, kBfloat16 };  // bfloat16 only where HasBf16Products()

  // x: rows x cols of f32, row-major, whose sum of squares is `squares`; multiplied by a power of 2 in
  // place if its norm is so far from 1 that products would not fit a float. `result`: the same size,
  // apart from x. NaN and infinity spread to all elements.
  void Start(Numbers numbers, int64_t rows, int64_t cols, double squares, float* x, float* result);
  // Of a stage, 0 .. kStages - 1, which may run when all parts of the one before are done.
  int64_t parts(int stage) const;
  void Run(int stage, int64_t part) const;
  // Inside a ParallelFor, or with one compute thread, for the bits of RunTogether (core/matrix_product.h).
  void RunAll() const;

 private:
  MatrixProduct Stage(int stage) const;
  MatrixProduct Gram() const;
  MatrixProduct Last() const;
  MatrixView Square(int64_t i) const;
  MatrixView q(int round) const { return Square(2 + round % 2); }
  MatrixView last_q() const { return q(kRounds - 1); }
  bool wide() const { return x_.rows <= x_.cols; }  // else the same with transposes

  // Pairs of bfloat16 numbers, each in the place of a float: along rows, and of neighbouring rows.
  MatrixView x_along() const, x_across() const, q_along() const;
  void RoundX(int64_t part) const;
  void RoundQ(int64_t part) const;

  Numbers numbers_ = Numbers::kFloat;
  MatrixView x_{}, result_{};
  float scale_ = 1;        // 1 / ||x||
  bool zero_ = false;      // nothing is left to do
  AlignedBuffer squares_;  // A, P, and Q of this round and of the one before
  AlignedBuffer pairs_;    // x along and across its rows, and Q
};

// All threads share the parts of all `matrices`, which have been started. Thread-safety: the
// trainer thread. Cost: a fork and join of the team for each stage.
void RunTogether(std::span<const Orthogonalization> matrices);

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_ORTHOGONALIZE_H_
