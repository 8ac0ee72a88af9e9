#include "data/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(EpochPermutationTest, ContainsEveryIndexOnce) {
  for (const int64_t n : {2, 3, 100, 4097}) {
    std::vector<int64_t> order = EpochPermutation(1, 0, n);
    std::sort(order.begin(), order.end());
    ASSERT_EQ(static_cast<int64_t>(order.size()), n);
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(order[i], i);
  }
}

TEST(EpochPermutationTest, NoneAndOne) {
  EXPECT_THAT(EpochPermutation(1, 0, 0), IsEmpty());
  EXPECT_THAT(EpochPermutation(1, 0, 1), ElementsAre(0));
}

TEST(EpochPermutationTest, EpochsAndSeedsDiffer) {
  EXPECT_EQ(EpochPermutation(1, 5, 100), EpochPermutation(1, 5, 100));
  EXPECT_NE(EpochPermutation(1, 5, 100), EpochPermutation(1, 6, 100));
  EXPECT_NE(EpochPermutation(1, 5, 100), EpochPermutation(2, 5, 100));
}

// A run that is resumed on another machine or with a later version must see the same order.
TEST(EpochPermutationTest, GoldenOrder) {
  EXPECT_THAT(EpochPermutation(1, 0, 10), ElementsAre(0, 2, 3, 5, 9, 1, 7, 8, 6, 4));
  EXPECT_THAT(EpochPermutation(1, 1, 10), ElementsAre(3, 8, 2, 1, 4, 7, 6, 9, 5, 0));
  EXPECT_THAT(EpochPermutation(12345678901234, 7, 10), ElementsAre(5, 3, 4, 2, 9, 8, 0, 7, 1, 6));
}

// All 24 orders of 4 occur about equally often:
// 9,600 draws give 400 each, +- 20 (one sigma).
TEST(EpochPermutationTest, IsUniform) {
  constexpr int kDraws = 9600, kExpected = 400, kFiveSigma = 100;
  std::map<std::vector<int64_t>, int> counts;
  for (int epoch = 0; epoch < kDraws; ++epoch) ++counts[EpochPermutation(1, epoch, 4)];
  EXPECT_EQ(counts.size(), 24u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, kExpected, kFiveSigma);
}

}  // namespace
}  // namespace ringtail
