// Products of dense matrices, against sums in double precision.
#include "core/matrix_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/random.h"

namespace ringtail {
namespace {

constexpr uint64_t kTestStream = 4;

std::vector<float> RandomMatrix(int64_t elements, uint64_t key) {
  Rng rng(RngKey(key).With(kTestStream));
  std::vector<float> values(elements);
  for (float& value : values) value = rng.Uniform(-1, 1);
  return values;
}

// Sizes around the blocks of 64 rows and the tiles of 16.
class SymmetricProductTest : public testing::TestWithParam<std::pair<int64_t, int64_t>> {
 protected:
  const int64_t k_ = GetParam().first, n_ = GetParam().second;
  std::vector<float> c_ = RandomMatrix(k_ * k_, 2);

  // c = alpha x x^T + beta old, where x(i, d) = data[i * row + d * column].
  void ExpectGram(const std::vector<float>& x, int64_t row, int64_t column, double alpha,
                  const std::vector<float>& old, double beta) const {
    for (int64_t i = 0; i < k_; ++i) {
      for (int64_t j = 0; j < k_; ++j) {
        double sum = 0;
        for (int64_t d = 0; d < n_; ++d) {
          sum += static_cast<double>(x[i * row + d * column]) * x[j * row + d * column];
        }
        const double kept = beta == 0 ? 0 : beta * old[std::max(i, j) * k_ + std::min(i, j)];
        EXPECT_NEAR(c_[i * k_ + j], alpha * sum + kept, 1e-5 * static_cast<double>(n_ + 1));
        EXPECT_EQ(c_[i * k_ + j], c_[j * k_ + i]);
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Sizes, SymmetricProductTest,
                         testing::Values(std::pair{1, 1}, std::pair{3, 50}, std::pair{64, 7},
                                         std::pair{65, 20}, std::pair{130, 33},
                                         std::pair{200, 10}));

TEST_P(SymmetricProductTest, RowsTimesRows) {
  std::vector<float> x = RandomMatrix(k_ * n_, 1);
  const std::vector<float> old = c_;
  const MatrixView view{x.data(), k_, n_};
  MultiplyToSymmetric(0.5F, view, Operand::kTransposed, view, -2, {c_.data(), k_, k_});
  ExpectGram(x, n_, 1, 0.5, old, -2);
}

TEST_P(SymmetricProductTest, ColumnsTimesColumns) {
  std::vector<float> x = RandomMatrix(k_ * n_, 1);
  MultiplyTransposedToSymmetric({x.data(), n_, k_}, {c_.data(), k_, k_});
  ExpectGram(x, 1, k_, 1, {}, 0);
}

// A symmetric matrix commutes with itself.
TEST_P(SymmetricProductTest, TheSquareOfASymmetricMatrix) {
  std::vector<float> x = RandomMatrix(k_ * n_, 1), a(k_ * k_), whole(k_ * k_);
  const MatrixView view{x.data(), k_, n_}, symmetric{a.data(), k_, k_};
  MultiplyToSymmetric(1.0F / static_cast<float>(n_), view, Operand::kTransposed, view, 0,
                      symmetric);
  MultiplyToSymmetric(1, symmetric, Operand::kAsIs, symmetric, 0, {c_.data(), k_, k_});
  MultiplyMatrices(1, Operand::kAsIs, symmetric, Operand::kAsIs, symmetric, 0,
                   {whole.data(), k_, k_});
  for (int64_t i = 0; i < k_ * k_; ++i) EXPECT_NEAR(c_[i], whole[i], 1e-4) << i;
}

}  // namespace
}  // namespace ringtail
