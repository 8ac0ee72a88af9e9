// What is said of rounds before the first step.
#include "apps/trainer/local/round_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/apps/tiny_run.h"

namespace ringtail {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kPeriod[] = "dist.local.period=4";

std::string Stops(const std::vector<std::string>& overrides, bool alone = false) {
  return WhenItStops(TinyConfig(overrides).config.dist(), alone);
}

TEST(WhenItStopsTest, AfterTheStepWithoutRounds) {
  EXPECT_EQ(Stops({}), "after this step");
  EXPECT_EQ(Stops({kPeriod}, /*alone=*/true), "after this step") << "the mean of one rank";
}

TEST(WhenItStopsTest, WhereTheOthersHaveHeardOfIt) {
  EXPECT_EQ(Stops({kPeriod, "dist.local.overlap=false"}), "at the end of this round");
  EXPECT_EQ(Stops({kPeriod}), "at the end of the next round");
  EXPECT_EQ(Stops({"dist.local.period_rule=AUTO"}), "at the end of the next round");
  EXPECT_EQ(Stops({kPeriod, "dist.local.outer_momentum=0.5"}, /*alone=*/true),
            "at the end of this round")
      << "nothing travels";
}

TEST(WhenItStopsTest, AfterTheStepBeforeTheRounds) {
  EXPECT_EQ(Stops({kPeriod, "dist.local.start_epoch=1.5"}),
            "after this step, from epoch 1.5 on at the end of the next round");
}

// 5 steps an epoch, 4 epochs; the image size changes after 10 steps, and the round before is shorter.
std::string Warning(const std::vector<std::string>& overrides, bool alone = false) {
  const RunConfig config = TinyConfig(overrides).config;
  const TrainingPlan plan(config, kTinyStepsPerEpoch);
  return WarnOfLongRounds(config, plan, alone);
}

TEST(WarnOfLongRoundsTest, NothingIsSaidOfShortOnes) {
  EXPECT_EQ(Warning({"dist.local.period=5", "train.checkpoint_every_steps=5"}), "");
  EXPECT_EQ(Warning({"dist.local.period=10", "train.evaluate_every_epochs=2"}), "");
  EXPECT_EQ(Warning({"dist.local.period=99", "train.evaluate_every_epochs=2"}), "")
      << "they end where the image size changes";
  EXPECT_EQ(Warning({"train.checkpoint_every_steps=1"}), "");
}

TEST(WarnOfLongRoundsTest, BothNumbersAreSaid) {
  EXPECT_THAT(Warning({"dist.local.period=6"}),
              AllOf(HasSubstr("rounds have up to 6 steps (dist.local.period), more than the 5 from "
                              "one evaluation to the next (train.evaluate_every_epochs): "),
                    HasSubstr("come at ends of rounds only"), Not(HasSubstr("checkpoint to"))));
  const std::string rare = "train.evaluate_every_epochs=99";
  EXPECT_THAT(Warning({"dist.local.period=6", rare, "train.checkpoint_every_steps=4"}),
              HasSubstr("up to 6 steps (dist.local.period), more than the 4 from one checkpoint to "
                        "the next (train.checkpoint_every_steps): "));
  EXPECT_THAT(
      Warning({"dist.local.period=99", "train.checkpoint_every_steps=4"}),
      HasSubstr("up to 10 steps (dist.local.period), more than the 5 from one evaluation to "
                "the next (train.evaluate_every_epochs) and the 4 from one checkpoint to "
                "the next (train.checkpoint_every_steps): "));
}

TEST(WarnOfLongRoundsTest, NothingIsSaidOfWhatIsNotKnownOrDoesNotHappen) {
  EXPECT_EQ(Warning({"dist.local.period_rule=AUTO", "train.checkpoint_every_steps=1"}), "");
  EXPECT_EQ(Warning({"dist.local.period_rule=QUADRATIC", "dist.local.quadratic_alpha=0.1",
                     "dist.local.period=6"}),
            "");
  EXPECT_EQ(Warning({"dist.local.period=6"}, /*alone=*/true), "");
}

TEST(WarnOfLongRoundsTest, ARunWithoutAnEndIsNotWalkedThrough) {
  EXPECT_THAT(Warning({"dist.local.period=6", "train.epochs=1e6", "train.phase="}),
              HasSubstr("up to 6 steps"));
  const RunConfig config =
      TinyConfig({"dist.local.period=100000", "train.epochs=1e6", "train.phase="}).config;
  const TrainingPlan plan(config, int64_t{1} << 40);
  EXPECT_EQ(WarnOfLongRounds(config, plan, /*alone=*/false), "");
}

// Evaluations are as many images apart, which are fewer steps then.
TEST(WarnOfLongRoundsTest, WhereTheBatchGrowsEvaluationsComeAfterFewerSteps) {
  RunConfig config = TinyConfig({"dist.local.period=4", "optim.batch_growth.max_batch=16",
                                 "optim.step.every_epochs=1", "optim.step.gamma=0.5"})
                         .config;
  config.mutable_train()->clear_phase();
  const TrainingPlan plan(config, kTinyStepsPerEpoch,
                          {.optim = config.optim(), .images_per_batch = 8, .most_batches = 2});
  ASSERT_EQ(plan.stages().size(), 2U);
  EXPECT_THAT(WarnOfLongRounds(config, plan, /*alone=*/false),
              HasSubstr("up to 4 steps (dist.local.period), more than the 2 from one evaluation"));
}

}  // namespace
}  // namespace ringtail
