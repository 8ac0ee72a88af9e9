#include "apps/trainer/training_plan.h"

#include <gtest/gtest.h>

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
    EXPECT_EQ(plan.EvaluationIsDue(step), step == 10 || step == 20 || step == 25) << step;
  }
  EXPECT_DOUBLE_EQ(plan.EpochAt(15), 1.5);
}

TEST(TrainingPlanTest, RunsOfLessThanAStepHaveOne) {
  EXPECT_EQ(TrainingPlan(Config(0.001, 1), 10).total_steps(), 1);
  EXPECT_TRUE(TrainingPlan(Config(1, 0.001), 10).EvaluationIsDue(1));
}

TEST(TrainingPlanTest, HugeIntervalsDoNotOverflow) {
  EXPECT_FALSE(TrainingPlan(Config(2, 1e300), 10).EvaluationIsDue(10));
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
  EXPECT_DOUBLE_EQ(plan.WorkLeft(20), 10 * 4);  // told in steps of 64 pixels, as the last one was
  EXPECT_DOUBLE_EQ(plan.WorkLeft(21), 9);
}

TEST(TrainingPlanTest, APhaseFromTheBeginningReplacesTheDataSize) {
  RunConfig config = Config(10, 1);
  config.mutable_train()->add_phase()->set_image_size(96);
  EXPECT_EQ(TrainingPlan(config, 10).PhaseAt(0).image_size, 96);
}

TEST(TrainingPlanTest, CheckpointsBetweenEvaluations) {
  RunConfig config = Config(1, 1);
  EXPECT_FALSE(TrainingPlan(config, 10).CheckpointIsDue(5));
  config.mutable_train()->set_checkpoint_every_steps(5);
  const TrainingPlan plan(config, 10);
  EXPECT_FALSE(plan.CheckpointIsDue(0));
  EXPECT_FALSE(plan.CheckpointIsDue(4));
  EXPECT_TRUE(plan.CheckpointIsDue(5));
}

}  // namespace
}  // namespace ringtail
