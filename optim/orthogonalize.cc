#include "optim/orthogonalize.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "core/matrix_product.h"
#include "core/sum_of_squares.h"

namespace ringtail {
namespace {

constexpr int kRounds = 5;
constexpr double kSmallest = 0x1p-100;
constexpr float kA = 3.4445F, kB = -4.7750F, kC = 2.0315F;

// c = a b
void Multiply(const MatrixView& a, const MatrixView& b, const MatrixView& c) {
  MultiplyMatrices(1, Operand::kAsIs, a, Operand::kAsIs, b, 0, c);
}

// c = a b of polynomials of the same symmetric matrix.
void MultiplyPolynomials(const MatrixView& a, const MatrixView& b, const MatrixView& c) {
  MultiplyToSymmetric(1, a, Operand::kAsIs, b, 0, c);
}

void Scale(float factor, int64_t n, float* x) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) x[i] *= factor;
}

// p = a + b gram + c gram^2
void Polynomial(const MatrixView& gram, const MatrixView& p) {
  std::copy_n(gram.data, gram.rows * gram.cols, p.data);
  MultiplyToSymmetric(kC, gram, Operand::kAsIs, gram, kB, p);
  for (int64_t i = 0; i < p.rows; ++i) p.data[i * p.cols + i] += kA;
}

}  // namespace

void Orthogonalize(int64_t rows, int64_t cols, float* x, std::vector<float>* scratch) {
  const int64_t size = rows * cols, k = std::min(rows, cols);
  const double norm = std::sqrt(SumOfSquares(std::span(x, size)));
  // Too small to normalise, as the decayed momentum of a layer without gradient: return zeros. (NaN
  // compares false and propagates.)
  if (norm < kSmallest) {
    std::fill_n(x, size, 0.0F);
    return;
  }
  Scale(static_cast<float>(1 / norm), size, x);

  scratch->resize(std::max<size_t>(scratch->size(), size + 4 * k * k));
  float* free = scratch->data();
  const auto square = [&] { return MatrixView{std::exchange(free, free + k * k), k, k}; };
  const MatrixView gram = square(), p = square();
  MatrixView q = square(), spare = square();
  const MatrixView start{x, rows, cols}, end{free, rows, cols};
  const bool wide = rows <= cols;  // else the same with transposes

  if (wide) {
    MultiplyToSymmetric(1, start, Operand::kTransposed, start, 0, gram);
  } else {
    MultiplyTransposedToSymmetric(start, gram);
  }
  Polynomial(gram, q);
  std::copy_n(q.data, k * k, p.data);
  for (int round = 1; round < kRounds; ++round) {
    MultiplyPolynomials(p, gram, spare);
    MultiplyPolynomials(spare, p, gram);
    Polynomial(gram, p);
    MultiplyPolynomials(p, q, spare);
    std::swap(q, spare);
  }
  wide ? Multiply(q, start, end) : Multiply(start, q, end);
  std::copy_n(end.data, size, x);
}

}  // namespace ringtail
