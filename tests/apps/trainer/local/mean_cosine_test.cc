// Cosines from norms, beside those from the vectors themselves.
#include "apps/trainer/local/mean_cosine.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <vector>

namespace ringtail {
namespace {

using Vector = std::array<double, 3>;

double Product(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// `weights`: c_i; `changes`: D_i.
std::optional<double> CosineOf(const std::vector<double>& weights,
                               const std::vector<Vector>& changes) {
  DifferenceNorms all;
  Vector sum{};
  for (size_t i = 0; i < changes.size(); ++i) {
    all.Add(weights[i], Product(changes[i], changes[i]));
    for (size_t k = 0; k < sum.size(); ++k) sum[k] += weights[i] * changes[i][k];
  }
  return MeanCosine(all, Product(sum, sum));
}

TEST(MeanCosine, OfTwoIsThatBetweenThem) {
  EXPECT_DOUBLE_EQ(*CosineOf({1, 1}, {{1, 0, 0}, {0, 5, 0}}), 0);
  EXPECT_NEAR(*CosineOf({1, 1}, {{1, 0, 0}, {2, 2, 0}}), std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(*CosineOf({0.2, 3}, {{1, 0, 0}, {-2, 2, 0}}), -std::sqrt(0.5), 1e-12)
      << "weights make vectors longer, and do not turn them";
}

TEST(MeanCosine, PairsCountByTheirNorms) {
  const std::vector<Vector> changes = {{1, 0, 0}, {0, 2, 0}, {3, 0, 0}};
  // Products of norms: 2, 3 (of equal directions), 6.
  EXPECT_NEAR(*CosineOf({1, 1, 1}, changes), 3.0 / 11, 1e-12);
  EXPECT_NEAR(*CosineOf({1, 1, 2}, changes), 6.0 / 20, 1e-12);
}

TEST(MeanCosine, RoundingDoesNotTakeItBeyondOne) {
  DifferenceNorms all;
  for (int i = 0; i < 2; ++i) all.Add(1, 1);
  EXPECT_EQ(*MeanCosine(all, 4 * (1 + 1e-7)), 1);
  EXPECT_EQ(*MeanCosine(all, -1e-7), -1);
}

TEST(MeanCosine, WithoutAPairThereIsNone) {
  EXPECT_EQ(CosineOf({1}, {{1, 2, 3}}), std::nullopt);
  EXPECT_EQ(CosineOf({1, 0}, {{1, 2, 3}, {3, 2, 1}}), std::nullopt) << "one has no images";
  EXPECT_EQ(CosineOf({1, 1}, {{1, 2, 3}, {}}), std::nullopt) << "one has changed nothing";
  EXPECT_EQ(CosineOf({1, 1}, {{}, {}}), std::nullopt);
  EXPECT_EQ(CosineOf({1, 1}, {{1, 2, 3}, {1e-7, 0, 0}}), std::nullopt) << "lost in rounding";
  DifferenceNorms all;
  for (int i = 0; i < 2; ++i) all.Add(1, 1);
  EXPECT_EQ(MeanCosine(all, std::nan("")), std::nullopt);
}

}  // namespace
}  // namespace ringtail
