// What a checkpoint keeps of a round.
#include "apps/trainer/local/round_sums.h"

#include <gtest/gtest.h>

namespace ringtail {
namespace {

// Shares of 48, 24 and 28 images: an equal one is a third of a hundred, 8 times.
TEST(RoundSums, TheWeightKeepsItsBitsInACheckpoint) {
  for (const double batch : {48, 24, 28}) {
    RoundSums sums;
    for (int step = 0; step < 8; ++step) {
      sums.expected += 100.0 / 3;
      sums.own.images += batch;
      ++sums.steps;
    }
    const RoundSums restored = RoundSums::Restored(sums.Save(), sums.steps);
    EXPECT_EQ(restored.Weight(), sums.Weight()) << batch;
    EXPECT_NEAR(sums.Weight(), 3 * batch / 100, 1e-6);
  }
}

TEST(RoundSums, AStepOfOneRankIsStillOneInTheMeanOfThem) {
  EXPECT_EQ(RoundSums::Restored({10, 1, 1, 1.0F / 3, 10}, 2).own.left_out, 1);
  EXPECT_EQ(RoundSums::Restored({10, 1, 1, 0, 10}, 2).own.left_out, 0);
}

TEST(RoundSums, WithoutAStepThereIsNoWeight) { EXPECT_EQ(RoundSums().Weight(), 0); }

}  // namespace
}  // namespace ringtail
