// What a run says after 50 steps of how right its prediction was.
#include "apps/plan/prediction_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace ringtail {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kStepsOfRun = 1000;

// Of 64 pixels, from `larger_from_epoch` on of 96.
TrainingPlan PlanOf(double larger_from_epoch = 1) {
  RunConfig config;
  config.mutable_data()->set_image_size(64);
  config.mutable_train()->set_epochs(1);
  PhaseConfig* const phase = config.mutable_train()->add_phase();
  phase->set_from_epoch(larger_from_epoch);
  phase->set_image_size(96);
  return TrainingPlan(config, kStepsOfRun);
}

// Of a step of 20 ms forward, 40 backward, in both of which layers wait for 1, 5 exposed, 10 for the update.
StatusOr<Prediction> Predicted(int64_t, int local_steps) {
  const int period = std::max(local_steps, 1);
  const double steps = period;
  return Prediction{.choice = {.hosts = 2, .period = period},
                    .seconds = {.forward = 0.019 * steps,
                                .backward = 0.037 * steps,
                                .update = 0.010 * steps,
                                .contention = 0.002 * steps,
                                .coding = 0.001 * steps,
                                .wire = 0.004 * steps,
                                .activations = 0.0015 * steps,
                                .batch_norm = 0.0005 * steps}};
}

class PredictionReportTest : public testing::Test {
 protected:
  // A step as predicted, but for `exposed` ms of communication.
  void Step(double exposed, double whole, const TrainingPlan& plan) {
    Metrics metrics;
    metrics.step = ++step_;
    metrics.own = {.data_wait_ms = 0,
                   .forward_ms = 20,
                   .backward_ms = 40,
                   .exposed_comm_ms = exposed,
                   .hidden_comm_ms = 0};
    metrics.step_ms = whole;
    metrics.ranks.resize(rounds_ ? 0 : 2);
    report_.OnStep(metrics, plan);
  }
  void Round(int64_t local_steps, double exposed) {
    Metrics metrics;
    metrics.kind = Metrics::Kind::kRound;
    metrics.step = step_;
    metrics.local_steps = local_steps;
    metrics.own.exposed_comm_ms = exposed;
    report_.OnRound(metrics);
  }

  int64_t step_ = 0;
  bool rounds_ = false;  // of local steps
  std::vector<Metrics> records_;
  TrainingObserver nobody_;
  PredictionReport report_{&nobody_,
                           [this](const Metrics& metrics) { records_.push_back(metrics); }};
};

TEST_F(PredictionReportTest, ComparesFiftyStepsAfterTheWarmUpOnce) {
  const TrainingPlan plan = PlanOf();
  report_.Expect(Predicted);
  for (int i = 0; i < PredictionReport::kWarmUpSteps; ++i) Step(500, 600, plan);
  for (int i = 1; i < PredictionReport::kComparedSteps; ++i) Step(5, 75, plan);
  EXPECT_TRUE(records_.empty());
  Step(5, 75, plan);
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].kind, Metrics::Kind::kPrediction);
  EXPECT_EQ(records_[0].step, 55);
  EXPECT_EQ(records_[0].compared_steps, 50);
  for (const PredictedTerm& term : records_[0].terms) {
    EXPECT_NEAR(term.measured_ms, term.predicted_ms, 1e-9) << term.name;
  }
  for (int i = 0; i < 100; ++i) Step(5, 75, plan);
  EXPECT_EQ(records_.size(), 1U);
}

// Four local steps, of which the fourth waits 20 ms for the exchange; first, rounds of two.
TEST_F(PredictionReportTest, OfRoundsComparesWholeOnesOfTheLengthThatTheyHaveInTheEnd) {
  const TrainingPlan plan = PlanOf();
  rounds_ = true;
  report_.Expect(Predicted);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 2; ++i) Step(0, 700, plan);
    Round(2, 20);
  }
  while (step_ < 100 && records_.empty()) {
    for (int i = 0; i < 4; ++i) Step(0, i == 3 ? 90 : 70, plan);
    Round(4, 20);
  }
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].step, 20 + 4 + 52);
  EXPECT_EQ(records_[0].compared_steps, 52);
  for (const PredictedTerm& term : records_[0].terms) {
    EXPECT_NEAR(term.measured_ms, term.predicted_ms, 1e-9) << term.name;
  }
}

// A round of one step is no step in which all ranks exchange gradients.
TEST_F(PredictionReportTest, RoundsOfOneStepArePredictedAsRounds) {
  const TrainingPlan plan = PlanOf();
  std::vector<int> asked;
  const auto predict = [&](int64_t image_size, int local_steps) {
    asked.push_back(local_steps);
    return Predicted(image_size, local_steps);
  };
  report_.Expect(predict);
  for (int i = 0; i < 3; ++i) Step(5, 75, plan);
  EXPECT_THAT(asked, testing::ElementsAre(0));
  rounds_ = true;
  while (step_ < 100 && records_.empty()) {
    Step(0, 75, plan);
    Round(1, 5);
  }
  EXPECT_THAT(asked, testing::ElementsAre(0, 1));
  EXPECT_EQ(records_.size(), 1U);
}

// Of the first size there are too few steps. Those of the second are as predicted of it, after a warm-up.
TEST_F(PredictionReportTest, EachImageSizeIsComparedByItself) {
  const TrainingPlan larger = PlanOf(0.04);  // from step 40 on
  std::vector<int64_t> asked;
  report_.Expect([&](int64_t image_size, int local_steps) {
    asked.push_back(image_size);
    return Predicted(image_size, local_steps);
  });
  for (int i = 0; i < 40; ++i) Step(500, 700, larger);
  for (int i = 0; i < PredictionReport::kWarmUpSteps; ++i) Step(500, 600, larger);
  for (int i = 0; i < 100; ++i) Step(5, 75, larger);
  EXPECT_THAT(asked, testing::ElementsAre(64, 96));
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].step, 40 + 55);
  for (const PredictedTerm& term : records_[0].terms) {
    EXPECT_NEAR(term.measured_ms, term.predicted_ms, 1e-9) << term.name;
  }
}

TEST_F(PredictionReportTest, EveryImageSizeWithEnoughStepsHasItsLine) {
  const TrainingPlan larger = PlanOf(0.06);  // from step 60 on
  report_.Expect(Predicted);
  for (int i = 0; i < 200; ++i) Step(5, 75, larger);
  ASSERT_EQ(records_.size(), 2U);
  EXPECT_EQ(records_[0].step, 55);
  EXPECT_EQ(records_[1].step, 60 + 55);
  EXPECT_EQ(records_[0].image_size, 64);
  EXPECT_EQ(records_[1].image_size, 96);
}

TEST_F(PredictionReportTest, IsSilentWithoutAPredictionAndWhereStepsChange) {
  const TrainingPlan same = PlanOf();
  for (int i = 0; i < 100; ++i) Step(5, 75, same);
  report_.Expect(Predicted);
  for (int i = 0; i < 10; ++i) Step(5, 75, same);
  report_.OnBatchGrowth("batch 64 from now on");
  for (int i = 0; i < 100; ++i) Step(5, 75, same);
  report_.Expect(
      [](int64_t, int) -> StatusOr<Prediction> { return InvalidArgument("no such choice"); });
  for (int i = 0; i < 100; ++i) Step(5, 75, same);
  EXPECT_TRUE(records_.empty());
}

TEST(DescribeComparisonTest, NamesTheTermsThatAreFarOff) {
  const std::vector<PredictedTerm> terms = {
      {"forward", 20, 21}, {"exposed exchange", 10, 25}, {"update", 14, 4}, {"step", 44, 50}};
  const std::string text = DescribeComparison(50, 64, terms);
  EXPECT_THAT(
      text,
      HasSubstr("50 steps with images of 64 pixels took 50.0 ms each, 44.0 predicted (-12 %)"));
  EXPECT_THAT(text, HasSubstr("forward 21.0 (20.0 predicted)"));
  EXPECT_THAT(text, HasSubstr("exposed exchange takes 30 % of the step longer than predicted"));
  EXPECT_THAT(text, HasSubstr("update takes 20 % of the step less than predicted"));
  EXPECT_THAT(text, Not(HasSubstr("forward takes")));
  const std::string right = DescribeComparison(50, 64, {{"forward", 20, 21}, {"step", 20, 21}});
  EXPECT_THAT(right, HasSubstr("no term is off by more than 10 % of the step"));
}

}  // namespace
}  // namespace ringtail
