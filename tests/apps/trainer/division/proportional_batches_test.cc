// How a batch is divided among ranks of different speeds: a pure function, so that all ranks have
// the same table.
#include "apps/trainer/division/proportional_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using Speeds = std::vector<double>;

std::vector<int64_t> Batches(const Speeds& speeds, int64_t total, int64_t unit = 1) {
  return ProportionalBatches(speeds, total, unit);
}

TEST(ProportionalBatches, AreInProportion) {
  EXPECT_THAT(Batches({200, 100}, 63), ElementsAre(42, 21));
  EXPECT_THAT(Batches({212, 105}, 64), ElementsAre(43, 21));
  EXPECT_THAT(Batches({1, 2, 5}, 8), ElementsAre(1, 2, 5));
  EXPECT_THAT(Batches({7}, 9), ElementsAre(9));
}

TEST(ProportionalBatches, WhatIsLeftOverGoesToTheLargestRemainders) {
  // 3.2, 4.8 and 8: the first loses 0.2, the second 0.8.
  EXPECT_THAT(Batches({1, 1.5, 2.5}, 16), ElementsAre(3, 5, 8));
  // 3.6, 1.8 and 3.6: the second loses 0.8; of the others, with 0.6, the lower rank comes first.
  EXPECT_THAT(Batches({4, 2, 4}, 9), ElementsAre(4, 2, 3));
}

TEST(ProportionalBatches, EqualRanksHaveEqualBatches) {
  EXPECT_THAT(Batches({3, 3, 3, 3}, 64), ElementsAre(16, 16, 16, 16));
  EXPECT_THAT(Batches({3, 3, 3, 3}, 66), ElementsAre(17, 17, 16, 16)) << "as EvenPart divides";
  EXPECT_THAT(Batches({10, 1, 10, 1}, 44), ElementsAre(20, 2, 20, 2));
}

TEST(ProportionalBatches, EveryRankHasSomething) {
  EXPECT_THAT(Batches({1000, 1, 1}, 16), ElementsAre(14, 1, 1));
  EXPECT_THAT(Batches({1, 1000, 900.5}, 3), ElementsAre(1, 1, 1));
  // The second's share is 1.01 of 18, until the third is given more than its own.
  EXPECT_THAT(Batches({100, 5.95, 0.1}, 18), ElementsAre(16, 1, 1));
}

TEST(ProportionalBatches, AreMultiplesOfTheUnit) {
  EXPECT_THAT(Batches({200, 100}, 64, 4), ElementsAre(44, 20));
  EXPECT_THAT(Batches({200, 1}, 64, 8), ElementsAre(56, 8));
}

TEST(ProportionalBatches, SpeedsThatDifferByNoiseAreEqual) {
  EXPECT_THAT(Batches({100, 95, 97, 104}, 64), ElementsAre(16, 16, 16, 16));
  EXPECT_THAT(Batches({212, 105, 205, 99}, 96), ElementsAre(32, 16, 32, 16));
  EXPECT_THAT(EvenedSpeeds(Speeds{10, 20, 9.5, 19}), ElementsAre(9.75, 19.5, 9.75, 19.5));
  // A chain of small differences is no reason to count the first and the last as equal.
  const Speeds chain = EvenedSpeeds(Speeds{100, 92, 85, 78});
  EXPECT_THAT(chain, ElementsAre(96, 96, 81.5, 81.5));
}

// For any speeds: the sum is right, every rank has a batch, a faster rank has no smaller one, and
// each share above one unit is met to within one unit.
TEST(ProportionalBatches, HoldForAnySpeeds) {
  Rng rng(RngKey(5).With(kTestStream));
  for (int trial = 0; trial < 3000; ++trial) {
    Speeds speeds(1 + rng.Below(12));
    for (double& speed : speeds) speed = std::exp(rng.Uniform(-4, 4));
    const auto unit = static_cast<int64_t>(1 + rng.Below(4));
    const auto ranks = static_cast<int64_t>(speeds.size());
    const int64_t total = unit * (ranks + static_cast<int64_t>(rng.Below(500)));
    const std::vector<int64_t> batches = Batches(speeds, total, unit);
    ASSERT_EQ(std::accumulate(batches.begin(), batches.end(), int64_t{0}), total);
    ASSERT_EQ(batches, Batches(speeds, total, unit));
    const Speeds evened = EvenedSpeeds(speeds);
    const double all = std::accumulate(evened.begin(), evened.end(), 0.0);
    const bool raised = *std::ranges::min_element(evened) * static_cast<double>(total) <
                        all * static_cast<double>(unit);
    for (size_t i = 0; i < batches.size(); ++i) {
      ASSERT_GE(batches[i], unit);
      ASSERT_EQ(batches[i] % unit, 0);
      const double due = evened[i] / all * static_cast<double>(total);
      ASSERT_TRUE(raised || std::abs(static_cast<double>(batches[i]) - due) <
                                static_cast<double>(unit) + 1e-9);
      for (size_t k = 0; k < batches.size(); ++k) {
        ASSERT_TRUE(evened[i] <= evened[k] || batches[i] >= batches[k]);
      }
    }
  }
}

// Ranks that change places change their batches, if the division has no remainder.
TEST(ProportionalBatches, DoNotDependOnTheOrder) {
  EXPECT_THAT(Batches({1, 3, 2}, 60), ElementsAre(10, 30, 20));
  EXPECT_THAT(Batches({3, 2, 1}, 60), ElementsAre(30, 20, 10));
}

}  // namespace
}  // namespace ringtail
