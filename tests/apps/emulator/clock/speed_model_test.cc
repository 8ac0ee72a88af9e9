#include "apps/emulator/clock/speed_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "apps/emulator/clock/event_queue.h"

namespace ringtail {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(SpeedModelTest, WithoutJitterAndPeriodsWorkTakesItsTime) {
  const SpeedModel speed(1, 0, {});
  EXPECT_EQ(speed.EndOf(3, 17, 5 * kSecond, 0.25), 5 * kSecond + kSecond / 4);
}

TEST(SpeedModelTest, JitterIsAPureFunctionWithMeanOneAndItsSpread) {
  const SpeedModel speed(1, 0.2, {}), same(1, 0.2, {}), other(2, 0.2, {});
  double sum = 0, logs = 0, squares = 0;
  constexpr int kDraws = 20'000;
  for (int i = 0; i < kDraws; ++i) {
    const double jitter = speed.Jitter(i % 7, i);
    sum += jitter;
    logs += std::log(jitter);
    squares += std::log(jitter) * std::log(jitter);
  }
  const double mean_log = logs / kDraws;
  EXPECT_NEAR(sum / kDraws, 1, 0.006);  // four standard errors
  EXPECT_NEAR(std::sqrt(squares / kDraws - mean_log * mean_log), 0.2, 0.005);
  EXPECT_EQ(speed.Jitter(2, 5), same.Jitter(2, 5));
  EXPECT_NE(speed.Jitter(2, 5), speed.Jitter(2, 6));
  EXPECT_NE(speed.Jitter(2, 5), speed.Jitter(3, 5));
  EXPECT_NE(speed.Jitter(2, 5), other.Jitter(2, 5));
}

TEST(SpeedModelTest, AWorkerIsSlowOnlyWithinItsPeriod) {
  const SpeedModel speed(
      1, 0, {{.worker = 1, .factor = 4, .from_ns = 10 * kSecond, .to_ns = 20 * kSecond}});
  EXPECT_EQ(speed.EndOf(1, 0, 0, 2), 2 * kSecond);              // before
  EXPECT_EQ(speed.EndOf(1, 0, 12 * kSecond, 1), 16 * kSecond);  // within
  EXPECT_EQ(speed.EndOf(1, 0, 20 * kSecond, 2), 22 * kSecond);  // after
  EXPECT_EQ(speed.EndOf(0, 0, 12 * kSecond, 1), 13 * kSecond);  // another worker
  EXPECT_EQ(speed.EndOf(1, 0, 9 * kSecond, 2), 14 * kSecond);   // 1 s fast, 1 s slow
  EXPECT_EQ(speed.EndOf(1, 0, 18 * kSecond, 1), 20 * kSecond + kSecond / 2);
  EXPECT_EQ(speed.EndOf(1, 0, 8 * kSecond, 5), 20 * kSecond + kSecond / 2);  // across all of it
}

TEST(SpeedModelTest, PeriodsThatOverlapMultiply) {
  const SpeedModel speed(1, 0,
                         {{.worker = 0, .factor = 2, .to_ns = 10 * kSecond},
                          {.worker = 0, .factor = 3, .from_ns = 4 * kSecond}});
  EXPECT_EQ(speed.EndOf(0, 0, 0, 1), 2 * kSecond);
  EXPECT_EQ(speed.EndOf(0, 0, 4 * kSecond, 1), 10 * kSecond);
  EXPECT_EQ(speed.EndOf(0, 0, 10 * kSecond, 1), 13 * kSecond);
}

}  // namespace
}  // namespace ringtail
