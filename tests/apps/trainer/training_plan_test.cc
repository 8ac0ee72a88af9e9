#include "apps/trainer/training_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ringtail {
namespace {

RunConfig Config(double epochs, double evaluate_every) {
  RunConfig config;
  config.mutable_data()->set_image_size(64);
  config.mutable_train()->set_epochs(epochs);
  config.mutable_train()->set_evaluate_every_epochs(evaluate_every);
  return config;
}

TEST(TrainingPlanTest, EvaluatesAtIntervalsAndAtTheEnd) {
  const TrainingPlan plan(Config(2.5, 1), 10);
  EXPECT_EQ(plan.total_steps(), 25);
  for (int64_t step = 0; step <= 25; ++step) {
    EXPECT_EQ(plan.EvaluationIsDue(step - 1, step), step == 10 || step == 20 || step == 25) << step;
  }
  EXPECT_DOUBLE_EQ(plan.EpochAt(15), 1.5);
}

// Steps that end at no synchronized point (update/update_path.h) postpone what is due, and skip
// nothing.
TEST(TrainingPlanTest, WhatIsDueInBetweenIsDueAtTheNextPoint) {
  RunConfig config = Config(2.5, 0.7);
  config.mutable_train()->set_checkpoint_every_steps(4);
  config.mutable_dist()->set_check_every_steps(3);
  const TrainingPlan plan(config, 10);
  using IsDue = bool (TrainingPlan::*)(int64_t, int64_t) const;
  for (const IsDue is_due : {&TrainingPlan::EvaluationIsDue, &TrainingPlan::CheckpointIsDue,
                             &TrainingPlan::ComparisonIsDue}) {
    for (int64_t since = -1; since < 25; ++since) {
      bool due = false;
      for (int64_t step = since + 1; step <= 25; ++step) {
        due = due || (plan.*is_due)(step - 1, step);
        EXPECT_EQ((plan.*is_due)(since, step), due) << since << " .. " << step;
      }
    }
  }
}

TEST(TrainingPlanTest, RunsOfLessThanAStepHaveOne) {
  EXPECT_EQ(TrainingPlan(Config(0.001, 1), 10).total_steps(), 1);
  EXPECT_TRUE(TrainingPlan(Config(1, 0.001), 10).EvaluationIsDue(0, 1));
}

TEST(TrainingPlanTest, HugeIntervalsDoNotOverflow) {
  EXPECT_FALSE(TrainingPlan(Config(2, 1e300), 10).EvaluationIsDue(9, 10));
}

TEST(TrainingPlanTest, PhasesBeginAtTheirSteps) {
  RunConfig config = Config(10, 1);
  PhaseConfig* phase = config.mutable_train()->add_phase();
  phase->set_from_epoch(1.26);
  phase->set_image_size(96);
  phase = config.mutable_train()->add_phase();
  phase->set_from_epoch(5);
  phase->set_image_size(128);
  const TrainingPlan plan(config, 10);
  EXPECT_EQ(plan.PhaseAt(0).image_size, 64);
  EXPECT_EQ(plan.PhaseAt(12).image_size, 64);
  EXPECT_EQ(plan.PhaseAt(13).image_size, 96);
  EXPECT_EQ(plan.PhaseAt(49).image_size, 96);
  EXPECT_EQ(plan.PhaseAt(50).image_size, 128);
  EXPECT_EQ(plan.PhaseAt(1000).image_size, 128);
}

TEST(TrainingPlanTest, LayersThawAtTheFirstStepThatBeginsThere) {
  RunConfig config = Config(10, 1);
  EXPECT_EQ(TrainingPlan(config, 10).thaw_step(), TrainingPlan::kNever);
  EXPECT_FALSE(TrainingPlan(config, 10).IsThawed(1'000'000));
  // Steps of one batch, then of two and of four.
  OptimConfig optim;
  optim.set_learning_rate(0.1);
  optim.mutable_multi_step()->set_gamma(0.5);
  for (const double epoch : {2, 4}) optim.mutable_multi_step()->add_at_epochs(epoch);
  optim.mutable_batch_growth();
  for (const double epochs : {0.04, 0.1, 1.26, 2.0, 2.3, 2.4, 3.9, 4.0, 5.1, 9.9, 1e300}) {
    config.mutable_train()->set_freeze_epochs(epochs);
    const TrainingPlan plan(config, 10, {.optim = optim, .images_per_batch = 4, .most_batches = 4});
    ASSERT_EQ(plan.stages().size(), 3U);
    for (int64_t step = 0; step <= plan.total_steps(); ++step) {
      const auto batches = static_cast<double>(plan.BatchesBefore(step));
      EXPECT_EQ(plan.IsThawed(step), batches >= std::round(10 * epochs)) << epochs << " " << step;
    }
  }
}

TEST(TrainingPlanTest, WorkLeftCountsLaterPhasesByTheirPixels) {
  RunConfig config = Config(3, 1);
  EXPECT_DOUBLE_EQ(TrainingPlan(config, 10).WorkLeft(0), 30);
  EXPECT_DOUBLE_EQ(TrainingPlan(config, 10).WorkLeft(12), 18);
  EXPECT_DOUBLE_EQ(TrainingPlan(config, 10).WorkLeft(30), 0);
  PhaseConfig* phase = config.mutable_train()->add_phase();
  phase->set_from_epoch(2);
  phase->set_image_size(128);
  phase = config.mutable_train()->add_phase();
  phase->set_from_epoch(5);  // after the end
  phase->set_image_size(256);
  const TrainingPlan plan(config, 10);
  EXPECT_DOUBLE_EQ(plan.WorkLeft(0), 20 + 10 * 4);
  EXPECT_DOUBLE_EQ(plan.WorkLeft(20), 10 * 4);
  EXPECT_DOUBLE_EQ(plan.WorkLeft(21), 9 * 4);
  EXPECT_DOUBLE_EQ(plan.WorkOf(19), 1);
  EXPECT_DOUBLE_EQ(plan.WorkOf(20), 4);
}

TEST(TrainingPlanTest, APhaseFromTheBeginningReplacesTheDataSize) {
  RunConfig config = Config(10, 1);
  config.mutable_train()->add_phase()->set_image_size(96);
  EXPECT_EQ(TrainingPlan(config, 10).PhaseAt(0).image_size, 96);
}

TEST(TrainingPlanTest, CheckpointsBetweenEvaluations) {
  RunConfig config = Config(1, 1);
  EXPECT_FALSE(TrainingPlan(config, 10).CheckpointIsDue(4, 5));
  config.mutable_train()->set_checkpoint_every_steps(5);
  const TrainingPlan plan(config, 10);
  EXPECT_FALSE(plan.CheckpointIsDue(-1, 0));
  EXPECT_FALSE(plan.CheckpointIsDue(3, 4));
  EXPECT_TRUE(plan.CheckpointIsDue(4, 5));
}

// The rate falls by 5 at epochs 2 and 3 of 4, which have 10 batches each: steps take 1, then 5,
// then at most 7 batches.
class GrownPlanTest : public testing::Test {
 protected:
  static TrainingPlan Plan(const RunConfig& config, int64_t most_batches = 7) {
    OptimConfig optim;
    optim.mutable_batch_growth();
    optim.mutable_multi_step()->add_at_epochs(2);
    optim.mutable_multi_step()->add_at_epochs(3);
    optim.mutable_multi_step()->set_gamma(0.2);
    return {config, 10, {.optim = optim, .images_per_batch = 8, .most_batches = most_batches}};
  }
};

TEST_F(GrownPlanTest, StepsTakeMoreBatches) {
  const TrainingPlan plan = Plan(Config(4, 1));
  // 20 steps of one, 2 of five, 1 of seven; a second one would end further past the end.
  ASSERT_EQ(plan.total_steps(), 20 + 2 + 1);
  EXPECT_EQ(plan.stages().size(), 3U);
  const std::vector<int64_t> before = {19, 20, 25, 30, 37};
  for (int64_t step = 19; step <= 23; ++step) {
    EXPECT_EQ(plan.BatchesBefore(step), before.at(step - 19)) << step;
  }
  EXPECT_EQ(plan.BatchesOf(19), 1);
  EXPECT_EQ(plan.BatchesOf(20), 5);
  EXPECT_EQ(plan.BatchesOf(22), 7);
  EXPECT_DOUBLE_EQ(plan.EpochAt(21), 2.5);
  EXPECT_DOUBLE_EQ(plan.EpochAt(23), 3.7);
  for (int64_t step = 0; step <= 23; ++step) {
    EXPECT_EQ(plan.StageBeginningAt(step), step == 20 ? 1U : step == 22 ? 2U : 0U) << step;
  }
}

TEST_F(GrownPlanTest, TheRunEndsWithTheStepWhoseEndIsNearest) {
  EXPECT_EQ(Plan(Config(4.1, 1)).total_steps(), 20 + 2 + 2) << "of 41 batches 44, not 37";
  // The last stage is too short for a step.
  const TrainingPlan plan = Plan(Config(3.3, 1));
  EXPECT_EQ(plan.total_steps(), 20 + 2);
  EXPECT_EQ(plan.stages().size(), 2U);
  EXPECT_DOUBLE_EQ(plan.EpochAt(22), 3);
  EXPECT_DOUBLE_EQ(plan.WorkLeft(22), 0);
}

// A run with more epochs continues as if it had had them from the beginning.
TEST_F(GrownPlanTest, WhatHasBeenDoneDoesNotDependOnTheEnd) {
  for (const double epochs : {1.5, 2.0, 2.2, 2.8, 3.0, 3.3, 4.0}) {
    const TrainingPlan part = Plan(Config(epochs, 1)), whole = Plan(Config(6, 1));
    for (int64_t step = 0; step <= part.total_steps(); ++step) {
      EXPECT_EQ(part.BatchesBefore(step), whole.BatchesBefore(step)) << epochs << " " << step;
    }
    for (int64_t step = 0; step < part.total_steps(); ++step) {
      EXPECT_EQ(part.BatchesOf(step), whole.BatchesOf(step)) << epochs << " " << step;
    }
  }
}

TEST_F(GrownPlanTest, EvaluatesAfterTheFirstStepThatReachesTheMark) {
  const TrainingPlan plan = Plan(Config(6, 0.6));  // every 6 batches
  std::vector<int64_t> due;
  for (int64_t step = 0; step <= plan.total_steps(); ++step) {
    if (plan.EvaluationIsDue(step - 1, step)) due.push_back(plan.BatchesBefore(step));
  }
  EXPECT_EQ(due, (std::vector<int64_t>{6, 12, 18, 25, 30, 37, 44, 51, 58}));
}

TEST_F(GrownPlanTest, PhasesBeginWithAStep) {
  RunConfig config = Config(4, 1);
  config.mutable_train()->add_phase()->set_from_epoch(2.3);
  config.mutable_train()->mutable_phase(0)->set_image_size(128);
  const TrainingPlan plan = Plan(config);
  EXPECT_EQ(plan.PhaseAt(20).image_size, 64) << "takes batches 20 to 24";
  EXPECT_EQ(plan.PhaseAt(21).image_size, 128);
  EXPECT_DOUBLE_EQ(plan.WorkOf(20), 5);
  EXPECT_DOUBLE_EQ(plan.WorkOf(21), 5 * 4);
  EXPECT_DOUBLE_EQ(plan.WorkLeft(21), 12 * 4);
}

}  // namespace
}  // namespace ringtail
