// Products of dense matrices, against sums in double precision.
#include "core/matrix_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "core/kernels/bfloat16.h"
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

// Sizes around the blocks of 64 rows and the tiles of 16, and depths around the panels of 256.
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
                                         std::pair{65, 20}, std::pair{130, 33}, std::pair{200, 10},
                                         std::pair{96, 256}, std::pair{70, 257},
                                         std::pair{32, 700}));

TEST_P(SymmetricProductTest, RowsTimesRows) {
  std::vector<float> x = RandomMatrix(k_ * n_, 1);
  const std::vector<float> old = c_;
  const MatrixView view{x.data(), k_, n_};
  Multiply({.a = view,
            .b = view,
            .c = {c_.data(), k_, k_},
            .op_b = Operand::kTransposed,
            .alpha = 0.5F,
            .beta = -2,
            .symmetric = true});
  ExpectGram(x, n_, 1, 0.5, old, -2);
}

TEST_P(SymmetricProductTest, ColumnsTimesColumns) {
  std::vector<float> x = RandomMatrix(k_ * n_, 1);
  const MatrixView view{x.data(), n_, k_};
  Multiply({.a = view,
            .b = view,
            .c = {c_.data(), k_, k_},
            .op_a = Operand::kTransposed,
            .symmetric = true});
  ExpectGram(x, 1, k_, 1, {}, 0);
}

// A symmetric matrix commutes with itself.
TEST_P(SymmetricProductTest, TheSquareOfASymmetricMatrix) {
  std::vector<float> x = RandomMatrix(k_ * n_, 1), a(k_ * k_), whole(k_ * k_);
  const MatrixView view{x.data(), k_, n_}, symmetric{a.data(), k_, k_};
  Multiply({.a = view,
            .b = view,
            .c = symmetric,
            .op_b = Operand::kTransposed,
            .alpha = 1.0F / static_cast<float>(n_),
            .symmetric = true});
  Multiply({.a = symmetric, .b = symmetric, .c = {c_.data(), k_, k_}, .symmetric = true});
  Multiply({.a = symmetric, .b = symmetric, .c = {whole.data(), k_, k_}});
  for (int64_t i = 0; i < k_ * k_; ++i) EXPECT_NEAR(c_[i], whole[i], 1e-4) << i;
}

// Strips that are computed in the opposite order have the same bits: none needs another.
TEST_P(SymmetricProductTest, StripsDoNotDependOnOneAnother) {
  std::vector<float> x = RandomMatrix(k_ * n_, 1);
  const std::vector<float> old = c_;
  const MatrixView view{x.data(), k_, n_};
  const MatrixProduct product{.a = view,
                              .b = view,
                              .c = {c_.data(), k_, k_},
                              .op_b = Operand::kTransposed,
                              .beta = 3,
                              .symmetric = true};
  Multiply(product);
  const std::vector<float> forwards = std::exchange(c_, old);
  MatrixProduct again = product;
  again.c.data = c_.data();
  for (int64_t part = NumParts(again); part-- > 0;) MultiplyPart(again, part);
  EXPECT_EQ(c_, forwards);
}

// Of numbers that bfloat16 has, so that nothing is lost but in sums.
class PairProductTest : public SymmetricProductTest {
 protected:
  void SetUp() override {
    if (!RT_KERNEL(HasBf16Products)()) GTEST_SKIP() << "this processor has no AVX512-BF16";
    for (float& value : x_) value = Widen(Narrow(value));
  }

  // Of x as `rows` x `cols`: pairs along its rows, and of neighbouring rows.
  static std::vector<float> Along(const std::vector<float>& x, int64_t rows, int64_t cols) {
    std::vector<float> pairs((cols + 1) / 2 * rows);
    auto* to = reinterpret_cast<Bfloat16*>(pairs.data());
    for (int64_t i = 0; i < rows; ++i, to += (cols + 1) / 2 * 2) {
      for (int64_t j = 0; j < cols; ++j) to[j] = Narrow(x[i * cols + j]);
    }
    return pairs;
  }
  static std::vector<float> Across(const std::vector<float>& x, int64_t rows, int64_t cols) {
    std::vector<float> pairs((rows + 1) / 2 * cols);
    for (int64_t i = 0; i < rows; i += 2) {
      RT_KERNEL(PairBfloat16Rows)
      (x.data() + i * cols, i + 1 < rows ? x.data() + (i + 1) * cols : nullptr, cols,
       reinterpret_cast<Bfloat16*>(pairs.data() + i / 2 * cols));
    }
    return pairs;
  }
  static MatrixView ViewOf(std::vector<float>* pairs, int64_t rows) {
    return {pairs->data(), rows, std::ssize(*pairs) / rows};
  }

  std::vector<float> x_ = RandomMatrix(k_ * n_, 1);
};

INSTANTIATE_TEST_SUITE_P(Sizes, PairProductTest,
                         testing::Values(std::pair{1, 1}, std::pair{3, 50}, std::pair{64, 7},
                                         std::pair{65, 20}, std::pair{130, 33}, std::pair{96, 512},
                                         std::pair{70, 513}, std::pair{32, 1500}));

TEST_P(PairProductTest, RowsTimesRows) {
  std::vector<float> pairs = Along(x_, k_, n_);
  const MatrixView view = ViewOf(&pairs, k_);
  Multiply({.a = view,
            .b = view,
            .c = {c_.data(), k_, k_},
            .op_b = Operand::kTransposed,
            .alpha = 0.5F,
            .symmetric = true,
            .pairs = true});
  ExpectGram(x_, n_, 1, 0.5, {}, 0);
}

TEST_P(PairProductTest, ColumnsTimesColumns) {
  std::vector<float> pairs = Across(x_, n_, k_);
  const MatrixView view = ViewOf(&pairs, (n_ + 1) / 2);
  Multiply({.a = view,
            .b = view,
            .c = {c_.data(), k_, k_},
            .op_a = Operand::kTransposed,
            .symmetric = true,
            .pairs = true});
  ExpectGram(x_, 1, k_, 1, {}, 0);
}

// q x of a square q, and the same of transposes: x^T q^T.
TEST_P(PairProductTest, ASquareMatrixTimesAnother) {
  std::vector<float> q = RandomMatrix(k_ * k_, 3), wide(k_ * n_), tall(n_ * k_), x_transposed;
  for (float& value : q) value = Widen(Narrow(value));
  for (int64_t j = 0; j < n_; ++j) {
    for (int64_t i = 0; i < k_; ++i) x_transposed.push_back(x_[i * n_ + j]);
  }
  std::vector<float> left = Along(q, k_, k_), right = Across(x_, k_, n_),
                     rows = Along(x_transposed, n_, k_);
  Multiply({.a = ViewOf(&left, k_),
            .b = ViewOf(&right, (k_ + 1) / 2),
            .c = {wide.data(), k_, n_},
            .pairs = true});
  Multiply({.a = ViewOf(&rows, n_),
            .b = ViewOf(&left, k_),
            .c = {tall.data(), n_, k_},
            .op_b = Operand::kTransposed,
            .alpha = 2,
            .pairs = true});
  for (int64_t i = 0; i < k_; ++i) {
    for (int64_t j = 0; j < n_; ++j) {
      double sum = 0;
      for (int64_t d = 0; d < k_; ++d) sum += static_cast<double>(q[i * k_ + d]) * x_[d * n_ + j];
      ASSERT_NEAR(wide[i * n_ + j], sum, 1e-5 * static_cast<double>(k_ + 1)) << i << ", " << j;
      ASSERT_NEAR(tall[j * k_ + i], 2 * sum, 2e-5 * static_cast<double>(k_ + 1)) << i << ", " << j;
    }
  }
}

// Slices along either side of c, also of transposed operands.
TEST(MatrixProductTest, SlicesCoverTheProduct) {
  constexpr int64_t kDepth = 3;
  for (const auto& [rows, cols, parts] :
       {std::tuple(5, 1100, 3), std::tuple(513, 2, 2), std::tuple(512, 512, 1)}) {
    std::vector<float> a = RandomMatrix(rows * kDepth, 1), b = RandomMatrix(kDepth * cols, 2);
    for (const bool transposed : {false, true}) {
      std::vector<float> c(rows * cols);
      MatrixProduct product{.a = {a.data(), rows, kDepth},
                            .b = {b.data(), kDepth, cols},
                            .c = {c.data(), rows, cols}};
      if (transposed) {
        std::swap(product.a.rows, product.a.cols);
        std::swap(product.b.rows, product.b.cols);
        product.op_a = product.op_b = Operand::kTransposed;
      }
      EXPECT_EQ(NumParts(product), parts);
      Multiply(product);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < cols; ++j) {
          double sum = 0;
          for (int64_t d = 0; d < kDepth; ++d) {
            const float left = transposed ? a[d * rows + i] : a[i * kDepth + d];
            const float right = transposed ? b[j * kDepth + d] : b[d * cols + j];
            sum += static_cast<double>(left) * right;
          }
          ASSERT_NEAR(c[i * cols + j], sum, 1e-6) << i << ", " << j;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ringtail
