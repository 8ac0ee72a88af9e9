#include "core/stopwatch.h"

#include <gtest/gtest.h>

namespace ringtail {
namespace {

TEST(StopwatchTest, RestartReturnsTheTimeUntilThen) {
  const Stopwatch whole;
  Stopwatch part;
  const double first = part.Restart(), second = part.Restart();
  EXPECT_GE(first, 0);
  EXPECT_GE(second, 0);
  EXPECT_LE(first + second, whole.Seconds());
}

TEST(ScopedStopwatchTest, AddsItsLifetimeToTheTotal) {
  constexpr double kBefore = 5;
  double total = kBefore;
  const Stopwatch whole;
  for (int i = 0; i < 3; ++i) const ScopedStopwatch part(&total);
  EXPECT_GT(total, kBefore);
  EXPECT_LE(total - kBefore, whole.Seconds() + 1e-9);  // rounding of the sum
}

}  // namespace
}  // namespace ringtail
