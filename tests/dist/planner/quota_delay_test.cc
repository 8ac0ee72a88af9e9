#include "dist/planner/quota_delay.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ringtail {
namespace {

// The mean over messages that come at all times of a period, in whose first part a rank runs.
TEST(QuotaDelayTest, IsTheMeanWaitOverAPeriod) {
  constexpr int kTimes = 100'000;
  constexpr double kPeriod = 4e-3;
  for (const double cores : {0.125, 0.25, 0.5, 1.5, 3.2}) {
    const double runs = kPeriod * cores / std::ceil(cores);
    double waited = 0;
    for (int i = 0; i < kTimes; ++i) {
      const double comes = kPeriod * (i + 0.5) / kTimes;
      if (comes > runs) waited += kPeriod - comes;
    }
    EXPECT_NEAR(QuotaDelay(cores, kPeriod), waited / kTimes, 1e-8) << cores;
  }
}

TEST(QuotaDelayTest, IsNoneWhereNoThreadIsStopped) {
  EXPECT_EQ(QuotaDelay(2, 0.1), 0);
  EXPECT_EQ(QuotaDelay(0.25, 0), 0);
}

}  // namespace
}  // namespace ringtail
