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
