#include "apps/trainer/update/roll_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <latch>

#include "core/stop_signal.h"
#include "tests/apps/trainer/thread_world.h"

namespace ringtail {
namespace {

constexpr int kRanks = 3;

RankMetrics MetricsOf(int rank) {
  RankMetrics metrics;
  metrics.batch = 100 + rank;
  return metrics;
}

TEST(RollCallTest, EveryRankHearsWhatAllHaveSaid) {
  OnTrainingRanks(kRanks, [](TrainingWorld* world) {
    RollCall roll_call(world);
    for (int step = 0; step < 3; ++step) {
      roll_call.Begin(MetricsOf(10 * step + world->rank()), world->rank() + 0.5);
      const auto all = roll_call.Finish();
      ASSERT_TRUE(all.ok());
      ASSERT_EQ(all->size(), kRanks);
      for (int rank = 0; rank < kRanks; ++rank) {
        EXPECT_EQ((*all)[rank].metrics.batch, 100 + 10 * step + rank);
        EXPECT_EQ((*all)[rank].gradient_squares, rank + 0.5);
      }
      EXPECT_EQ(roll_call.stop_signal(), 0);
      EXPECT_GE(roll_call.waited_seconds(), 0);
      // Nothing of it counts as an exchange of gradients.
      EXPECT_EQ(world->gradient_thread()->TakeTimes().busy_seconds, 0);
    }
  });
}

// No rank finishes before all have begun; the others' words arrive while this rank computes.
TEST(RollCallTest, TravelsWhileRanksCompute) {
  std::latch computing(2), heard(1);
  OnTrainingRanks(2, [&](TrainingWorld* world) {
    RollCall roll_call(world);
    roll_call.Begin(MetricsOf(world->rank()), 0);
    computing.arrive_and_wait();
    if (world->rank() == 1) {
      heard.wait();  // rank 0 has heard from this rank, which has not finished
    }
    ASSERT_TRUE(roll_call.Finish().ok());
    if (world->rank() == 0) heard.count_down();
  });
}

// Those of a process are its threads' alike, so all say it; they agree once it has travelled.
TEST(RollCallTest, ASignalIsAgreedOn) {
  SetStopSignalForTest(SIGTERM);
  OnTrainingRanks(2, [](TrainingWorld* world) {
    RollCall roll_call(world);
    EXPECT_EQ(roll_call.stop_signal(), 0);
    roll_call.Begin({}, 0);
    EXPECT_EQ(roll_call.stop_signal(), 0);
    ASSERT_TRUE(roll_call.Finish().ok());
    EXPECT_EQ(roll_call.stop_signal(), SIGTERM);
  });
  TrainingWorld alone;
  RollCall own(&alone);
  EXPECT_EQ(own.stop_signal(), SIGTERM);
  SetStopSignalForTest(0);
  own.Begin(MetricsOf(0), 2);
  EXPECT_EQ((*own.Finish())[0].metrics.batch, 100);
}

}  // namespace
}  // namespace ringtail
