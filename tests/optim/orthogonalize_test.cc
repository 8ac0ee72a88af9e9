#include "optim/orthogonalize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/kernels/bfloat16.h"
#include "core/parallel_for.h"
#include "core/random.h"
#include "core/sum_of_squares.h"
#include "tests/optim/double_matrix.h"

namespace ringtail {
namespace {

std::vector<float> Drawn(int64_t n) {
  Rng rng(RngKey(1).With(kTestStream).With("matrix").With(static_cast<uint64_t>(n)));
  std::vector<float> values(n);
  for (float& v : values) v = rng.Normal();
  return values;
}

using Numbers = Orthogonalization::Numbers;

// Those that this machine multiplies.
std::vector<Numbers> AllNumbers() {
  if (!RT_KERNEL(HasBf16Products)()) return {Numbers::kFloat};
  return {Numbers::kFloat, Numbers::kBfloat16};
}

// By one thread, as RunAll says: products shared by several may divide their depth, and so have other last bits.
std::vector<float> Orthogonalized(int64_t rows, std::vector<float> x,
                                  Numbers numbers = Numbers::kFloat) {
  const int threads = NumComputeThreads();
  SetNumComputeThreads(1);
  std::vector<float> result(x.size());
  Orthogonalization matrix;
  matrix.Start(numbers, rows, static_cast<int64_t>(x.size()) / rows, SumOfSquares(x), x.data(),
               result.data());
  matrix.RunAll();
  SetNumComputeThreads(threads);
  return result;
}

struct Shape2 {
  int64_t rows, cols;
};

class OrthogonalizeTest : public testing::TestWithParam<Shape2> {};
INSTANTIATE_TEST_SUITE_P(Shapes, OrthogonalizeTest,
                         testing::Values(Shape2{1, 1}, Shape2{1, 9}, Shape2{9, 1}, Shape2{2, 40},
                                         Shape2{40, 2}, Shape2{33, 33}, Shape2{24, 77},
                                         Shape2{77, 24}),
                         [](const auto& info) {
                           return std::to_string(info.param.rows) + "x" +
                                  std::to_string(info.param.cols);
                         });

TEST_P(OrthogonalizeTest, FollowsTheIterationInDoublePrecision) {
  const auto [rows, cols] = GetParam();
  const std::vector<float> x = Drawn(rows * cols);
  const std::vector<double> expected = OrthogonalizedInDouble(rows, {x.begin(), x.end()});
  const std::vector<float> result = Orthogonalized(rows, x);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(result[i], expected[i], 1e-4) << i;
}

// Of x that is rounded already all that is lost is that Q is rounded, most where its eigenvalues lie far apart.
TEST_P(OrthogonalizeTest, OfBfloat16FollowsItToItsPrecision) {
  if (!RT_KERNEL(HasBf16Products)()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  const auto [rows, cols] = GetParam();
  std::vector<float> x = Drawn(rows * cols);
  for (float& value : x) value = Widen(Narrow(value));
  const std::vector<double> expected = OrthogonalizedInDouble(rows, {x.begin(), x.end()});
  const std::vector<float> result = Orthogonalized(rows, x, Numbers::kBfloat16);
  double squares = 0, wrong = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    squares += expected[i] * expected[i];
    wrong += (result[i] - expected[i]) * (result[i] - expected[i]);
  }
  EXPECT_LE(std::sqrt(wrong / squares), 0x1p-6);
}

TEST_P(OrthogonalizeTest, DoesNotDependOnTheMatrixsNorm) {
  const auto [rows, cols] = GetParam();
  const std::vector<float> x = Drawn(rows * cols);
  for (const Numbers numbers : AllNumbers()) {
    for (const float factor : {0x1p-60F, 0x1p60F}) {
      std::vector<float> scaled = x;
      for (float& v : scaled) v *= factor;
      EXPECT_EQ(Orthogonalized(rows, scaled, numbers), Orthogonalized(rows, x, numbers)) << factor;
    }
  }
}

// Rotates rows i and j: products of rotations are orthogonal.
void Rotate(DoubleMatrix* m, int64_t i, int64_t j, double angle) {
  for (int64_t k = 0; k < m->cols; ++k) {
    const double a = m->at(i, k), b = m->at(j, k);
    m->at(i, k) = std::cos(angle) * a - std::sin(angle) * b;
    m->at(j, k) = std::sin(angle) * a + std::cos(angle) * b;
  }
}

DoubleMatrix Orthogonal(int64_t n, double angle) {
  DoubleMatrix q{n, n, std::vector<double>(n * n)};
  for (int64_t i = 0; i < n; ++i) q.at(i, i) = 1;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j)
      Rotate(&q, i, j, angle * static_cast<double>(1 + i + 2 * j));
  }
  return q;
}

TEST(OrthogonalizeTest, MakesStrongAndWeakDirectionsEqual) {
  // x = U S V^T with singular values that fall to 1/400 of the norm: U^T x V must become a diagonal
  // of numbers around 1.
  constexpr int64_t kRows = 6, kCols = 10;
  const double singular[kRows] = {80, 40, 10, 3, 1, 0.225};
  const DoubleMatrix u = Orthogonal(kRows, 0.3), v = Orthogonal(kCols, 0.7);
  DoubleMatrix s{kRows, kCols, std::vector<double>(kRows * kCols)};
  for (int64_t i = 0; i < kRows; ++i) s.at(i, i) = singular[i];
  const DoubleMatrix x = u * s * Transpose(v);
  const std::vector<float> result = Orthogonalized(kRows, {x.values.begin(), x.values.end()});
  const DoubleMatrix o{kRows, kCols, {result.begin(), result.end()}};
  const DoubleMatrix seen = Transpose(u) * o * v;
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kCols; ++j) {
      if (i == j) {
        EXPECT_GT(seen.at(i, j), 0.66) << singular[i];
        EXPECT_LT(seen.at(i, j), 1.34) << singular[i];
      } else {
        EXPECT_NEAR(seen.at(i, j), 0, 2e-3) << i << ", " << j;
      }
    }
  }
}

// Directions of a matrix that is rounded to bfloat16 come out as strong, however weak, and however few there
// are: no eigenvalue that rounding has moved below zero grows.
TEST(OrthogonalizeTest, OfBfloat16StaysBounded) {
  if (!RT_KERNEL(HasBf16Products)()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  constexpr int64_t kRows = 48, kCols = 200;
  const std::vector<float> left = Drawn(kRows * kRows), right = Drawn(kRows * kCols);
  for (const int64_t rank : {1, 5, 48}) {
    for (const double decay : {1.0, 0.7, 0.3}) {
      std::vector<float> x(kRows * kCols);
      for (int64_t r = 0; r < rank; ++r) {
        for (int64_t i = 0; i < kRows; ++i) {
          const double row = left[i * kRows + r] * std::pow(decay, r);
          for (int64_t j = 0; j < kCols; ++j) {
            x[i * kCols + j] += static_cast<float>(row * right[r * kCols + j]);
          }
        }
      }
      const std::vector<float> result = Orthogonalized(kRows, x, Numbers::kBfloat16);
      // Singular values are at most 1.33, as those of f32, and what rounding adds.
      EXPECT_LE(std::sqrt(SumOfSquares(result)), 1.4 * std::sqrt(kRows)) << rank << ", " << decay;
      EXPECT_GE(std::sqrt(SumOfSquares(result)), 0.6) << rank << ", " << decay;
    }
  }
}

TEST(OrthogonalizeTest, ZerosStayZero) {
  for (const Numbers numbers : AllNumbers()) {
    EXPECT_THAT(Orthogonalized(3, std::vector<float>(12), numbers), testing::Each(0.0F));
  }
}

// Momentum without gradients decays to this: float's smallest number, where 0.9 x rounds to x.
TEST(OrthogonalizeTest, MatricesTooSmallToNormaliseBecomeZero) {
  for (const float tiny : {1e-45F, -4e-45F, 1e-40F}) {
    EXPECT_THAT(Orthogonalized(3, std::vector<float>(12, tiny)), testing::Each(0.0F)) << tiny;
  }
}

TEST(OrthogonalizeTest, NanPropagates) {
  std::vector<float> x = Drawn(12);
  x[5] = std::nanf("");
  for (const Numbers numbers : AllNumbers()) {
    EXPECT_THAT(Orthogonalized(3, x, numbers), testing::Contains(testing::IsNan()));
  }
}

std::vector<std::pair<int, Numbers>> Cases() {
  std::vector<std::pair<int, Numbers>> cases;
  for (const Numbers numbers : AllNumbers()) {
    for (const int threads : {1, 2, 5}) cases.emplace_back(threads, numbers);
  }
  return cases;
}

// Of matrices of several sizes, with one that is all zeros, also after other ones: whatever is
// shared by whichever threads, the bits are those of one thread.
TEST(OrthogonalizeTest, SeveralMatricesTogetherHaveTheBitsOfEachAlone) {
  constexpr Shape2 kShapes[] = {{70, 600}, {130, 130}, {1030, 20}, {3, 4}};
  const int threads = NumComputeThreads();
  std::vector<Orthogonalization> matrices(std::size(kShapes));
  for (const auto& [n, numbers] : Cases()) {
    SetNumComputeThreads(n);
    std::vector<std::vector<float>> inputs, results;
    for (const auto& [rows, cols] : kShapes) {
      inputs.push_back(rows == 3 ? std::vector<float>(rows * cols) : Drawn(rows * cols));
      results.emplace_back(rows * cols, 7.0F);
    }
    const auto before = inputs;
    for (size_t i = 0; i < matrices.size(); ++i) {
      matrices[i].Start(numbers, kShapes[i].rows, kShapes[i].cols, SumOfSquares(inputs[i]),
                        inputs[i].data(), results[i].data());
    }
    RunTogether(matrices);
    for (size_t i = 0; i < matrices.size(); ++i) {
      EXPECT_EQ(results[i], Orthogonalized(kShapes[i].rows, before[i], numbers))
          << n << " threads, " << i;
    }
    std::rotate(matrices.begin(), matrices.begin() + 1,
                matrices.end());  // each has another size the next time
  }
  SetNumComputeThreads(threads);
}

}  // namespace
}  // namespace ringtail
