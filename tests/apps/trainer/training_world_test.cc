// What ranks tell each other beside training.
#include "apps/trainer/training_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/apps/trainer/thread_world.h"

namespace ringtail {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(TrainingWorldTest, GatheredNumbersAreThoseOfEveryRank) {
  OnTrainingRanks(3, [](TrainingWorld* world) {
    const double own = world->rank();
    const auto all = world->GatherNumbers({own, 10 + own});
    ASSERT_TRUE(all.ok()) << all.status().message();
    EXPECT_THAT(*all, ElementsAre(ElementsAre(0, 10), ElementsAre(1, 11), ElementsAre(2, 12)));
  });
}

TEST(TrainingWorldTest, RanksWithoutNumbersGatherNone) {
  OnTrainingRanks(2, [](TrainingWorld* world) {
    const auto all = world->GatherNumbers({});
    ASSERT_TRUE(all.ok()) << all.status().message();
    EXPECT_EQ(all->size(), 2U);
    EXPECT_THAT(*all, Each(IsEmpty()));
  });
}

}  // namespace
}  // namespace ringtail
