#include "dist/planner/slowest_of.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

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

}  // namespace
}  // namespace ringtail
