#include "apps/trainer/asynchronous/server_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace ringtail {
namespace {

using testing::ElementsAre;

TEST(ServerProgressTest, AsDrawn) {
  const ServerProgress progress{
      .version = 1200, .images = 38'400, .next = 40'960, .unused = {{0, 32}, {4096, 8}}};
  const std::string text = "1200 38400 40960 0 32 4096 8";
  EXPECT_EQ(ServerProgressText(progress), text);
  const auto read = ParseServerProgress(text);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(NumbersOf(*read), NumbersOf(progress));
  EXPECT_THAT(read->unused, ElementsAre(Ticket{0, 32}, Ticket{4096, 8}));
  EXPECT_TRUE(ParseServerProgress("")->empty()) << "of a run that has no servers";
}

TEST(ServerProgressTest, ARoundEndsWhereSomethingIsDueButNotBeforeWhatWasHandedOut) {
  RunConfig config;
  config.mutable_data()->set_image_size(64);
  config.mutable_train()->set_epochs(4);
  config.mutable_train()->set_checkpoint_every_steps(4);
  PhaseConfig* const phase = config.mutable_train()->add_phase();
  phase->set_from_epoch(1.3);
  phase->set_image_size(96);
  const TrainingPlan plan(config, 10);
  EXPECT_EQ(NextRoundEnd(plan, 0, 0), 4);
  EXPECT_EQ(NextRoundEnd(plan, 8, 8), 10) << "an evaluation";
  EXPECT_EQ(NextRoundEnd(plan, 12, 12), 13) << "another image size";
  EXPECT_EQ(NextRoundEnd(plan, 1, 3), 4) << "stopped in step 3, some of whose rows are left";
  EXPECT_EQ(NextRoundEnd(plan, 1, 7), 7) << "stopped where nothing was due for longer";
  EXPECT_EQ(NextRoundEnd(plan, 38, 60), 40) << "the run's";
}

TEST(ServerProgressTest, WhatIsDamagedIsRefused) {
  for (const char* text : {"1", "1 2", "1 2 3 4", "1 2 -3", "1 2 3 x 5", "1  2 3"}) {
    EXPECT_EQ(ParseServerProgress(text).status().code(), StatusCode::kDataLoss) << text;
  }
}

TEST(ServerProgressTest, WhatARuleHasLearntKeepsAllBits) {
  const RuleScalars odd = {.updates = (int64_t{1} << 52) + 12345,
                           .usual_weight = 1.0 / 3,
                           .learning_rate = 5e-324,
                           .mean_step = std::numeric_limits<double>::max()};
  const auto read = ParseRuleScalars(RuleScalarsText(odd));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, odd);
  EXPECT_EQ(RuleScalarsText({.updates = 1200, .usual_weight = 0.5, .learning_rate = 0.01}),
            "1200 0.5 0.01 0");
}

TEST(ServerProgressTest, WhatARuleHasLearntIsRefusedIfDamaged) {
  EXPECT_TRUE(ParseRuleScalars("").ok());  // older checkpoints
  for (const char* text : {"1", "1 2 3", "1 2 3 4 5", "-1 1 1 1", "1 nan 1 1", "1 1 inf 1",
                           "1 1 1 -2", "x 1 1 1", "1  1 1"}) {
    EXPECT_EQ(ParseRuleScalars(text).status().code(), StatusCode::kDataLoss) << text;
  }
}

}  // namespace
}  // namespace ringtail
