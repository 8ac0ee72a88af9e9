// The orthogonal matrix next to a given one, nearly: U V^T of x = U S V^T. All directions of x become
// equally long, the many faint ones like the few loud ones.
//
//   x = x / ||x||                                    Frobenius, so that no singular value is above 1
//   five times:  P = a + b A + c A^2,  A = x x^T,  x = P x      a, b, c = 3.4445, -4.7750, 2.0315
//
// an odd polynomial of the singular values, U and V left alone, without ever computing them: Newton
// and Schulz's iteration, with Jordan et al.'s coefficients (2024), which trade accuracy for speed.
// Five rounds take every singular value of at least 1/500 of the norm to between 0.68 and 1.21, where
// 1.5, -0.5, 0 would need 14 rounds. Smaller ones grow 3.4445 times in a round; zeroes stay zero.
//
// Computed on the short side alone: since P and A commute, the next A is P A P, and all rounds
// together are one matrix, Q = P5 P4 P3 P2 P1, which x meets once:
//
//   A = x x^T;   five times:  P = a + b A + c A^2,  Q = P Q,  A = P A P;   x = Q x
//
// Thread-safety: any thread, one matrix each. From inside a ParallelFor it runs on that thread alone,
// and so gives the same bits for any number of threads.
// Cost: 4 k^2 n + 34 k^3 operations, k the shorter and n the longer side.
#ifndef RINGTAIL_OPTIM_ORTHOGONALIZE_H_
#define RINGTAIL_OPTIM_ORTHOGONALIZE_H_

#include <cstdint>
#include <vector>

namespace ringtail {

// x: rows x cols of f32, row-major, replaced. NaN and infinity spread over all of it. `scratch` grows
// to rows cols + 4 k^2 floats and may be passed again.
void Orthogonalize(int64_t rows, int64_t cols, float* x, std::vector<float>* scratch);

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_ORTHOGONALIZE_H_
