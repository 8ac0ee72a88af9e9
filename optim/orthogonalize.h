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
//   A = x x^T;   five times:  P = a + b A + c A^2,  Q = P Q,  A = P A P;   x = Q x
//
// Thread-safety: any thread, one matrix each. Called from inside a ParallelFor it runs on that
// thread alone, and so gives the same bits for any number of threads.
// Cost: 4 k^2 n + 34 k^3 operations, k the shorter and n the longer side, less what symmetry saves:
// all matrices but x are symmetric (core/matrix_product.h), 0.8 of that for 256 x 2304.
#ifndef RINGTAIL_OPTIM_ORTHOGONALIZE_H_
#define RINGTAIL_OPTIM_ORTHOGONALIZE_H_

#include <cstdint>
#include <vector>

namespace ringtail {

// x: rows x cols of f32, row-major, replaced. NaN and infinity spread to all elements. `scratch`
// grows to rows cols + 4 k^2 floats and may be reused.
void Orthogonalize(int64_t rows, int64_t cols, float* x, std::vector<float>* scratch);

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_ORTHOGONALIZE_H_
