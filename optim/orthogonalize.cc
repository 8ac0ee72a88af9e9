#include "optim/orthogonalize.h"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "core/check.h"
#include "core/sum_of_squares.h"

namespace ringtail {
namespace {

constexpr int kRounds = 5;
constexpr double kSmallest = 0x1p-100;
constexpr float kA = 3.4445F, kB = -4.7750F, kC = 2.0315F;

struct Matrix {
  float* data;
  int64_t rows, cols;  // row-major
};

enum class Read { kAsIs, kTransposed };

// c = alpha a b + beta c
void Multiply(float alpha, Read read_a, const Matrix& a, Read read_b, const Matrix& b, float beta,
              const Matrix& c) {
  const auto letter = [](Read read) { return read == Read::kAsIs ? 'N' : 'T'; };
  const int64_t depth = read_a == Read::kAsIs ? a.cols : a.rows;
  const dnnl_status_t status =
      dnnl_sgemm(letter(read_a), letter(read_b), c.rows, c.cols, depth, alpha, a.data, a.cols,
                 b.data, b.cols, beta, c.data, c.cols);
  RT_CHECK(status == dnnl_success, "a product of matrices failed");
}

void Multiply(const Matrix& a, const Matrix& b, const Matrix& c) {
  Multiply(1, Read::kAsIs, a, Read::kAsIs, b, 0, c);
}

void Scale(float factor, int64_t n, float* x) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) x[i] *= factor;
}

// p = a + b gram + c gram^2
void Polynomial(const Matrix& gram, const Matrix& p) {
  std::copy_n(gram.data, gram.rows * gram.cols, p.data);
  Multiply(kC, Read::kAsIs, gram, Read::kAsIs, gram, kB, p);
  for (int64_t i = 0; i < p.rows; ++i) p.data[i * p.cols + i] += kA;
}

}  // namespace

void Orthogonalize(int64_t rows, int64_t cols, float* x, std::vector<float>* scratch) {
  const int64_t size = rows * cols, k = std::min(rows, cols);
  const double norm = std::sqrt(SumOfSquares(std::span(x, size)));
  // Less than that can be neither divided by nor a direction: of a layer without gradients what was
  // left of its momentum. (Not a number goes on.)
  if (norm < kSmallest) {
    std::fill_n(x, size, 0.0F);
    return;
  }
  Scale(static_cast<float>(1 / norm), size, x);

  scratch->resize(std::max<size_t>(scratch->size(), size + 4 * k * k));
  float* free = scratch->data();
  const auto square = [&] { return Matrix{std::exchange(free, free + k * k), k, k}; };
  const Matrix gram = square(), p = square();
  Matrix q = square(), spare = square();
  const Matrix start{x, rows, cols}, end{free, rows, cols};
  const bool wide = rows <= cols;  // or the same of the transposes

  if (wide) {
    Multiply(1, Read::kAsIs, start, Read::kTransposed, start, 0, gram);
  } else {
    Multiply(1, Read::kTransposed, start, Read::kAsIs, start, 0, gram);
  }
  Polynomial(gram, q);
  std::copy_n(q.data, k * k, p.data);
  for (int round = 1; round < kRounds; ++round) {
    Multiply(p, gram, spare);
    Multiply(spare, p, gram);
    Polynomial(gram, p);
    Multiply(p, q, spare);
    std::swap(q, spare);
  }
  wide ? Multiply(q, start, end) : Multiply(start, q, end);
  std::copy_n(end.data, size, x);
}

}  // namespace ringtail
