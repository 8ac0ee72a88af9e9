#include "dist/compression/sketches/thin_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/dist/compression/sparse_gradients.h"

namespace ringtail {
namespace {

TEST(ThinProduct, FollowsTheDefinition) {
  for (const auto& [rows, columns] : {std::pair(1, 1), {5, 3}, {4, 16}, {33, 70}, {7, 5000}}) {
    for (int r = 1; r <= 8; ++r) {
      const ThinShape shape{.rows = rows, .columns = columns, .rank = r};
      const auto m = NormalGradient(rows * columns, 1), p = NormalGradient(rows * r, 2),
                 q = NormalGradient(columns * r, 3);
      std::vector<float> mq(rows * r), mp(columns * r), out(rows * columns);
      MultiplyRows(shape, m, q, mq);
      MultiplyColumns(shape, m, p, mp);
      MultiplyOut(shape, p, q, out);
      std::vector<double> exact_mq(rows * r), exact_mp(columns * r);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          double element = 0;
          for (int c = 0; c < r; ++c) {
            exact_mq[c * rows + i] += static_cast<double>(m[i * columns + j]) * q[c * columns + j];
            exact_mp[c * columns + j] += static_cast<double>(m[i * columns + j]) * p[c * rows + i];
            element += static_cast<double>(p[c * rows + i]) * q[c * columns + j];
          }
          ASSERT_NEAR(out[i * columns + j], element, 1e-4);
        }
      }
      for (int64_t i = 0; i < rows * r; ++i) ASSERT_NEAR(mq[i], exact_mq[i], 1e-3);
      for (int64_t j = 0; j < columns * r; ++j) ASSERT_NEAR(mp[j], exact_mp[j], 1e-3);
    }
  }
}

TEST(Orthonormalise, GivesOrthonormalVectorsOfTheSameSpace) {
  constexpr int64_t kRows = 100;
  const auto before = NormalGradient(kRows * 4, 1);
  for (const float scale : {1.0f, 1e-15f, 1e15f}) {
    std::vector<float> p;
    p.reserve(before.size());
    for (const float x : before) p.push_back(scale * x);
    Orthonormalise(kRows, 4, p);
    const Matrix vectors = Vectors(p, 4);
    for (int a = 0; a < 4; ++a) {
      for (int b = 0; b <= a; ++b) EXPECT_NEAR(Dot(vectors[a], vectors[b]), a == b, 1e-6);
    }
    for (const auto& old : Vectors(before, 4)) {  // the sum of its projections on the new ones
      double length = 0;
      for (const auto& vector : vectors) length += std::pow(Dot(old, vector), 2);
      EXPECT_NEAR(length, Dot(old, old), 1e-4);
    }
  }
}

TEST(Orthonormalise, DependentVectorsBecomeZeroOrOrthogonal) {
  constexpr int64_t kRows = 50;
  auto p = NormalGradient(kRows * 4, 1);
  std::copy_n(&p[0], kRows, &p[kRows]);                             // the first again
  for (int64_t i = 0; i < kRows; ++i) p[2 * kRows + i] = p[i] / 3;  // nearly the first
  std::fill_n(&p[3 * kRows], kRows, 0.0f);
  Orthonormalise(kRows, 4, p);
  const Matrix vectors = Vectors(p, 4);
  EXPECT_NEAR(Dot(vectors[0], vectors[0]), 1, 1e-6);
  EXPECT_EQ(Dot(vectors[1], vectors[1]), 0);
  EXPECT_NEAR(Dot(vectors[2], vectors[0]), 0, 1e-6);
  EXPECT_EQ(Dot(vectors[3], vectors[3]), 0);
}

}  // namespace
}  // namespace ringtail
