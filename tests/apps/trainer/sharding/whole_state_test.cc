// What ranks find together about a state of which each has its own. (Rows that they divide:
// sharded_ranks_test.cc.)
#include "apps/trainer/sharding/whole_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/apps/tiny_run.h"
#include "tests/apps/trainer/thread_world.h"

namespace ringtail {
namespace {

// Each rank has an optimizer state of its own (dist.local), and one of them has overflowed: a
// checkpoint is not written, by all of them; a trained network has none of it.
TEST(WholeStateTest, AllRanksHearOfTheOneWhoseStateIsNotFinite) {
  constexpr int kRanks = 3;
  const LoadedConfig loaded = TinyConfig({"optim.adam={}"});
  for (int bad = 0; bad < kRanks; ++bad) {
    OnTrainingRanks(kRanks, [&](TrainingWorld* world) {
      TrainingState state =
          TrainingState::Create(CreateModel(loaded).value(), loaded.config.optim(), 1).value();
      EXPECT_TRUE(CheckStateTogether(world, state).ok());
      if (world->rank() == bad) {
        const Parameter& p = state.model()->arena().parameters().front();
        state.optimizer()->state().back().values[p.offset] = std::numeric_limits<float>::infinity();
      }
      EXPECT_TRUE(CheckWeightsTogether(world, state).ok());
      const Status status = CheckStateTogether(world, state);
      EXPECT_EQ(status.code(), StatusCode::kDataLoss);
      EXPECT_THAT(status.message(), testing::HasSubstr("'optimizer."));
      EXPECT_TRUE(world->Barrier().ok());
    });
  }
}

}  // namespace
}  // namespace ringtail
