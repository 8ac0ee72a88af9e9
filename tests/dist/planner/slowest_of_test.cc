#include "dist/planner/slowest_of.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/random.h"

namespace ringtail {
namespace {

// Known in closed form up to five; 8 and 1000 from tables of order statistics (Harter 1961).
TEST(SlowestOfTest, HasTheExpectationsOfOrderStatistics) {
  const double root_pi = std::sqrt(std::numbers::pi);
  EXPECT_NEAR(SlowestOf(1), 0, 1e-12);
  EXPECT_NEAR(SlowestOf(2), 1 / root_pi, 1e-6);
  EXPECT_NEAR(SlowestOf(3), 3 / (2 * root_pi), 1e-6);
  EXPECT_NEAR(SlowestOf(8), 1.42360, 1e-5);
  EXPECT_NEAR(SlowestOf(1000), 3.24144, 1e-5);
}

TEST(SlowestOfTest, RisesWithTheRanks) {
  for (int n = 1; n < 1024; ++n) ASSERT_LT(SlowestOf(n), SlowestOf(n + 1)) << n;
}

// Rank 2 is twice as slow, and in every fifth step something slows all of them by a half.
std::vector<std::vector<double>> TimesOfRanks(size_t ranks, double deviation) {
  constexpr int kSteps = 5'000;
  Rng rng{RngKey(kTestStream)};
  std::vector<std::vector<double>> times(ranks);
  for (int step = 0; step < kSteps; ++step) {
    const double of_all = step % 5 == 0 ? 1.5 : 1;
    for (size_t rank = 0; rank < ranks; ++rank) {
      const double of_rank = rank == 2 ? 2 : 1;
      times[rank].push_back(of_all * of_rank * (1 + deviation * rng.Normal()));
    }
  }
  return times;
}

TEST(DeviationOfRanksTest, IsThatOfEachRankByItself) {
  EXPECT_NEAR(DeviationOfRanks(TimesOfRanks(8, 0.02)), 0.02, 0.001);
  EXPECT_NEAR(DeviationOfRanks(TimesOfRanks(4, 0.05)), 0.05, 0.005);
  // The median of |x - y| / 2 is 15 % below its mean.
  EXPECT_NEAR(DeviationOfRanks(TimesOfRanks(2, 0.05)), 0.85 * 0.05, 0.002);
}

TEST(DeviationOfRanksTest, WhatSlowsAllRanksAlikeIsNone) {
  EXPECT_NEAR(DeviationOfRanks(TimesOfRanks(4, 0)), 0, 1e-12);
}

TEST(DeviationOfRanksTest, GivesTheMedianWaitForTheSlowest) {
  const std::vector<std::vector<double>> times = {{1, 1, 1}, {1, 1.3, 1}, {1, 1, 1.6}};
  // Means are 1, 1.1 and 1.2, and each rank's median is 1.
  EXPECT_NEAR(SlowestOf(3) * DeviationOfRanks(times), 0.2 / 1.1, 1e-12);
}

TEST(DeviationOfRanksTest, OneRankWaitsForNoOther) {
  EXPECT_EQ(DeviationOfRanks(std::vector<std::vector<double>>{{1, 2, 3}}), 0);
  EXPECT_EQ(DeviationOfRanks({}), 0);
  EXPECT_EQ(DeviationOfRanks(std::vector<std::vector<double>>(2)), 0);
}

// As ends of rounds move on, played with draws.
double PlayedDelay(size_t ranks) {
  constexpr int kRounds = 20'000;
  Rng rng{RngKey(kTestStream)};
  std::vector<double> ends(ranks);
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<double> before = ends;
    for (size_t rank = 0; rank < ranks; ++rank) {
      const double delay = -std::log1p(-double{rng.Uniform()});
      ends[rank] = std::max(before[rank], before[(rank + ranks - 1) % ranks]) + delay;
    }
  }
  return *std::ranges::max_element(ends) / kRounds;
}

TEST(DelayOfRoundsTest, IsThatOfRingsWhoseDelaysAreExponential) {
  EXPECT_EQ(DelayOfRounds(1), 1);
  for (const int ranks : {2, 3, 4, 8, 16, 32}) {
    EXPECT_NEAR(PlayedDelay(static_cast<size_t>(ranks)) / DelayOfRounds(ranks), 1, 0.025) << ranks;
  }
}

}  // namespace
}  // namespace ringtail
