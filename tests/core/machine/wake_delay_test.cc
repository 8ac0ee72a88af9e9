#include "core/machine/wake_delay.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace ringtail {
namespace {

TEST(WakeDelayTest, IsTheMeanBeyondTheLeast) {
  EXPECT_EQ(MeanBeyondLeast({}), 0);
  EXPECT_EQ(MeanBeyondLeast({3e-3}), 0);
  EXPECT_DOUBLE_EQ(MeanBeyondLeast({1e-3, 5e-3, 3e-3}), 2e-3);
}

TEST(WakeDelayTest, EndsInTheMiddleOfASleep) {
  for (int i = 0; i < 100; ++i) EXPECT_GE(WakeDelay().Mean(), 0);
}

// However late, it counts no sleep itself.
TEST(WakeDelayTest, IsShorterThanTheTimeSinceItBegan) {
  const auto began = std::chrono::steady_clock::now();
  const WakeDelay delay;
  while (delay.Mean() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began;
  EXPECT_GT(delay.Mean(), 0);
  EXPECT_LT(delay.Mean(), passed.count());
}

}  // namespace
}  // namespace ringtail
