// Products of a large matrix with a few vectors: what PowerSGD computes.
//
//   M  rows x columns, one row after the other      Q  r vectors of `columns` elements
//                                                   P  r vectors of `rows` elements
//
//   MultiplyRows       P_c[i]   = sum over j of M[i][j] Q_c[j]         P = M Q
//   MultiplyColumns    Q_c[j]   = sum over i of M[i][j] P_c[i]         Q = M^T P
//   MultiplyOut        M[i][j]  = sum over c of P_c[i] Q_c[j]          M = P Q^T
//   Orthonormalise     P_c . P_b = 0 and |P_c| = 1
//
// Each sum has a fixed order that vector instructions can follow, so results are the same bits on
// every machine of an instruction set. All are memory-bound for r = 1 or 2 and a few times slower
// for 8.
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_COMPRESSION_SKETCHES_THIN_PRODUCT_H_
#define RINGTAIL_DIST_COMPRESSION_SKETCHES_THIN_PRODUCT_H_

#include <cstdint>
#include <span>

namespace ringtail {

struct ThinShape {
  int64_t rows = 0, columns = 0, rank = 0;
};

void MultiplyRows(const ThinShape& shape, std::span<const float> m, std::span<const float> q,
                  std::span<float> p);
void MultiplyColumns(const ThinShape& shape, std::span<const float> m, std::span<const float> p,
                     std::span<float> q);
void MultiplyOut(const ThinShape& shape, std::span<const float> p, std::span<const float> q,
                 std::span<float> m);

// Gram-Schmidt on r vectors of `rows` elements, one after the other: each loses its parts along
// the previous ones and gets the length 1. A vector of which less than 1e-8 remains depends on the
// others: it becomes zero. (The published code adds 1e-8 to the length instead, which shrinks
// gradients that are small as a whole.) In double, so that rounding errors of a vector that nearly
// depends on the others, as in a gradient of lower rank, are not taken for a direction of its own.
// NaN stays NaN.
void Orthonormalise(int64_t rows, int64_t rank, std::span<float> p);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_SKETCHES_THIN_PRODUCT_H_
