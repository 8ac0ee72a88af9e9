#include "optim/orthogonalize.h"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "core/check.h"
#include "core/sum_of_squares.h"

namespace ringtail {
namespace {

constexpr int kRounds = 5;
constexpr float kA = 3.4445F, kB = -4.7750F, kC = 2.0315F;

struct Matrix {
  float* data;
  int64_t rows, cols;
};

// c = alpha a b + beta c, row-major; `a` or `b` may be read as their transposes.
void Multiply(float alpha, char trans_a, const Matrix& a, char trans_b, const Matrix& b, float beta,
              const Matrix& c) {
  const int64_t depth = trans_a == 'N' ? a.cols : a.rows;
  const dnnl_status_t status = dnnl_sgemm(trans_a, trans_b, c.rows, c.cols, depth, alpha, a.data,
                                          a.cols, b.data, b.cols, beta, c.data, c.cols);
  RT_CHECK(status == dnnl_success, "a product of matrices failed");
}

void Scale(float factor, int64_t n, float* x) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) x[i] *= factor;
}

}  // namespace

void Orthogonalize(int64_t rows, int64_t cols, float* x, std::vector<float>* scratch) {
  const int64_t size = rows * cols, k = std::min(rows, cols);
  const double norm = std::sqrt(SumOfSquares(std::span(x, size)));
  if (norm == 0) return;
  Scale(static_cast<float>(1 / norm), size, x);
  scratch->resize(std::max<size_t>(scratch->size(), size + 2 * k * k));
  const Matrix gram{scratch->data(), k, k}, polynomial{gram.data + k * k, k, k};
  Matrix now{x, rows, cols}, next{polynomial.data + k * k, rows, cols};
  const bool wide = rows <= cols;  // tall: the transposes of all, with x^T x for A
  for (int round = 0; round < kRounds; ++round) {
    Multiply(1, wide ? 'N' : 'T', now, wide ? 'T' : 'N', now, 0, gram);
    std::copy_n(gram.data, k * k, polynomial.data);
    Multiply(kC, 'N', gram, 'N', gram, kB, polynomial);
    std::copy_n(now.data, size, next.data);
    if (wide) {
      Multiply(1, 'N', polynomial, 'N', now, kA, next);
    } else {
      Multiply(1, 'N', now, 'N', polynomial, kA, next);
    }
    std::swap(now, next);
  }
  if (now.data != x) std::copy_n(now.data, size, x);
}

}  // namespace ringtail
