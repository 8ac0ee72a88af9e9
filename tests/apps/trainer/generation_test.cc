// What ranks whose configs differ, as they may, make of a run: the same on all.
#include "apps/trainer/generation.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/apps/tiny_run.h"
#include "tests/apps/trainer/thread_world.h"

namespace ringtail {
namespace {

// For 1000 images, of which the run sees 160: twice the rate, but for trained weights.
LoadedConfig ShortRun(const std::vector<std::string>& more) {
  std::vector<std::string> set = {"train.batch=4", "optim.batch_scaling.rule=LINEAR",
                                  "optim.batch_scaling.reference_batch=8",
                                  "optim.batch_scaling.reference_images=1000"};
  set.insert(set.end(), more.begin(), more.end());
  return TinyConfig(set);
}

// On each of two ranks, where the first one's config has more.
void ExpectRate(double rate, const std::vector<std::string>& of_first, const ResumePoint& point) {
  OnTrainingRanks(2, [&](TrainingWorld* world) {
    const LoadedConfig loaded = ShortRun(world->leads() ? of_first : std::vector<std::string>());
    const TrainingData data = TrainingData::Open(loaded.config.data(), world).value();
    TrainingRun run =
        TrainingRun::Create({.loaded = &loaded, .data = &data, .rank = world->rank(), .ranks = 2})
            .value();
    const auto generation = Generation::Create(&run, point, world);
    ASSERT_TRUE(generation.ok()) << generation.status().message();
    EXPECT_DOUBLE_EQ(generation->optim.config.learning_rate(), rate) << world->rank();
  });
}

// --weights of rank 0 alone, or of a checkpoint that it alone reaches.
TEST(GenerationTest, WhetherARunHasWeightsIsWhatTheFirstRankSays) {
  ExpectRate(0.1, {}, {});
  ExpectRate(0.05, {"train.weights=\"trained\""}, {});
}

// 40 images an epoch: the square root of 1000 / 490.
TEST(GenerationTest, SoAreTheEpochsThatARunBeganWith) {
  ExpectRate(0.05 / 0.7, {"optim.batch_scaling.begun_epochs=12.25"}, {});
}

}  // namespace
}  // namespace ringtail
