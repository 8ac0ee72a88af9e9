#include "dist/compression/direction_guard.h"

#include <gtest/gtest.h>

#include <vector>

namespace ringtail {
namespace {

TEST(DirectionGuard, GuardsTheBucketsInTurn) {
  const DirectionGuard guard(/*every_steps=*/10, /*buckets=*/3);
  for (int64_t step = 0; step < 100; ++step) {
    for (size_t bucket = 0; bucket < 3; ++bucket) {
      const bool due = step % 10 == 0 && static_cast<size_t>(step / 10 % 3) == bucket;
      EXPECT_EQ(guard.Guards(step, bucket), due) << step << ", " << bucket;
    }
  }
  EXPECT_FALSE(DirectionGuard(/*every_steps=*/0, /*buckets=*/3).Guards(0, 0));
}

TEST(DirectionGuard, ReadsTheCosineAndTheResidual) {
  DirectionGuard guard(1, 1);
  const std::vector<float> dense = {3, 4}, half = {1.5, 2}, across = {-4, 3}, zero = {0, 0};
  guard.Compare(0, dense, half, {}, 2);
  guard.Compare(1, dense, across, dense, 2);
  guard.Compare(2, dense, zero, half, 4);
  guard.Compare(3, zero, dense, half, 4);  // no direction: no reading
  const std::vector<DirectionReading> readings = guard.TakeReadings();
  ASSERT_EQ(readings.size(), 3U);
  EXPECT_DOUBLE_EQ(readings[0].cosine, 1);
  EXPECT_EQ(readings[0].residual, 0);
  EXPECT_EQ(readings[1].parameter, 1U);
  EXPECT_DOUBLE_EQ(readings[1].cosine, 0);
  EXPECT_DOUBLE_EQ(readings[1].residual, 2);
  EXPECT_EQ(readings[2].cosine, 0);
  EXPECT_DOUBLE_EQ(readings[2].residual, 2);
  EXPECT_TRUE(guard.TakeReadings().empty());
}

}  // namespace
}  // namespace ringtail
