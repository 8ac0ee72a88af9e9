#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "tests/optim/bad_config.h"
#include "tests/optim/test_arena.h"

namespace ringtail {
namespace {

// 10 epochs of 20 steps at a rate of 0.4.
constexpr double kStepsPerEpoch = 20;
constexpr int64_t kTotalSteps = 200;
constexpr double kTolerance = 1e-12;

double Rate(const std::string& text, int64_t step) {
  return LearningRate(ParseOptim("learning_rate: 0.4 " + text), step, kTotalSteps, kStepsPerEpoch);
}

TEST(ScheduleTest, ConstantStays) {
  for (const int64_t step : {0, 1, 100, 199}) EXPECT_EQ(Rate("constant {}", step), 0.4);
}

TEST(ScheduleTest, StepFallsAtEachMultiple) {
  const std::string text = "step { every_epochs: 3 gamma: 0.5 }";
  EXPECT_EQ(Rate(text, 0), 0.4);
  EXPECT_EQ(Rate(text, 59), 0.4);
  EXPECT_NEAR(Rate(text, 60), 0.2, kTolerance);
  EXPECT_NEAR(Rate(text, 119), 0.2, kTolerance);
  EXPECT_NEAR(Rate(text, 120), 0.1, kTolerance);
  EXPECT_NEAR(Rate(text, 199), 0.05, kTolerance);
}

TEST(ScheduleTest, StepFallsOnTheMarkDespiteRounding) {
  // 0.3 / 0.1 is less than 3 in double precision.
  const OptimConfig config = ParseOptim("learning_rate: 1 step { every_epochs: 0.1 gamma: 0.5 }");
  EXPECT_NEAR(LearningRate(config, 2, 10, 10), 0.25, kTolerance);
  EXPECT_NEAR(LearningRate(config, 3, 10, 10), 0.125, kTolerance);
}

TEST(ScheduleTest, MultiStepFallsAtEachMark) {
  const std::string text = "multi_step { at_epochs: [2.5, 6] gamma: 0.1 }";
  EXPECT_EQ(Rate(text, 0), 0.4);
  EXPECT_EQ(Rate(text, 49), 0.4);
  EXPECT_NEAR(Rate(text, 50), 0.04, kTolerance);
  EXPECT_NEAR(Rate(text, 119), 0.04, kTolerance);
  EXPECT_NEAR(Rate(text, 120), 0.004, kTolerance);
  EXPECT_NEAR(Rate(text, 199), 0.004, kTolerance);
}

TEST(ScheduleTest, PolynomialFallsToItsEnd) {
  const std::string text = "polynomial { power: 2 end_fraction: 0.1 }";
  EXPECT_EQ(Rate(text, 0), 0.4);
  EXPECT_NEAR(Rate(text, 100), 0.04 + 0.36 * 0.25, kTolerance);
  EXPECT_NEAR(Rate(text, 199), 0.04 + 0.36 * 0.005 * 0.005, kTolerance);
  EXPECT_NEAR(Rate(text, 200), 0.04, kTolerance);
}

TEST(ScheduleTest, CosineFallsToItsEnd) {
  const std::string text = "cosine { end_fraction: 0.2 }";
  EXPECT_EQ(Rate(text, 0), 0.4);
  EXPECT_NEAR(Rate(text, 50), 0.08 + 0.32 * (1 + std::sqrt(0.5)) / 2, kTolerance);
  EXPECT_NEAR(Rate(text, 100), 0.24, kTolerance);
  EXPECT_NEAR(Rate(text, 199), 0.08 + 0.16 * (1 + std::cos(std::numbers::pi * 0.995)), kTolerance);
  EXPECT_NEAR(Rate(text, 200), 0.08, kTolerance);
}

TEST(ScheduleTest, CosineIsTheDefault) {
  for (const int64_t step : {0, 77, 199}) EXPECT_EQ(Rate("", step), Rate("cosine {}", step));
}

TEST(ScheduleTest, OneCycleRisesAndFalls) {
  const std::string text =
      "one_cycle { rise_fraction: 0.25 start_fraction: 0.1 end_fraction: 0.01 }";
  EXPECT_NEAR(Rate(text, 0), 0.04, kTolerance);
  EXPECT_NEAR(Rate(text, 25), (0.04 + 0.4) / 2, kTolerance);
  EXPECT_NEAR(Rate(text, 50), 0.4, kTolerance);
  EXPECT_NEAR(Rate(text, 125), (0.004 + 0.4) / 2, kTolerance);
  EXPECT_NEAR(Rate(text, 200), 0.004, kTolerance);
  for (int64_t step = 1; step < kTotalSteps; ++step) {
    if (step <= 50) {
      EXPECT_GT(Rate(text, step), Rate(text, step - 1)) << step;
    } else {
      EXPECT_LT(Rate(text, step), Rate(text, step - 1)) << step;
    }
  }
}

TEST(ScheduleTest, OneCycleWithoutARiseStartsAtTheTop) {
  EXPECT_NEAR(Rate("one_cycle { rise_fraction: 0 }", 0), 0.4, kTolerance);
}

TEST(ScheduleTest, FallingSchedulesNeverRise) {
  for (const char* text : {"step { every_epochs: 0.7 }", "multi_step { at_epochs: [1, 2, 9.95] }",
                           "polynomial {}", "cosine {}", "constant {}"}) {
    for (int64_t step = 1; step < kTotalSteps; ++step) {
      EXPECT_LE(Rate(text, step), Rate(text, step - 1)) << text << " at step " << step;
      EXPECT_GT(Rate(text, step), 0) << text << " at step " << step;
    }
  }
}

class WarmupTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Schedules, WarmupTest,
                         testing::Values("constant {}", "cosine {}", "polynomial {}",
                                         "step { every_epochs: 5 }", "multi_step { at_epochs: 4 }",
                                         "one_cycle { rise_fraction: 0 }"));

TEST_P(WarmupTest, RisesLinearlyToTheRate) {
  const std::string text = std::string(GetParam()) + " warmup { epochs: 2 start_fraction: 0.25 }";
  EXPECT_NEAR(Rate(text, 0), 0.1, kTolerance);
  EXPECT_NEAR(Rate(text, 20), 0.25, kTolerance);
  EXPECT_NEAR(Rate(text, 39), 0.1 + 0.3 * 39 / 40, kTolerance) << "last step of the warm-up";
  EXPECT_NEAR(Rate(text, 40), 0.4, kTolerance) << "first step after";
  EXPECT_LE(Rate(text, 41), 0.4);
}

TEST(WarmupTest, StartsAtZeroByDefault) {
  EXPECT_EQ(Rate("warmup { epochs: 2 }", 0), 0);
  EXPECT_NEAR(Rate("warmup { epochs: 2 }", 1), 0.01, kTolerance);
}

TEST(WarmupTest, DelaysCurvesButNotMarks) {
  const std::string warmup = " warmup { epochs: 2 }";
  EXPECT_NEAR(Rate("cosine {}" + warmup, 120), 0.2, kTolerance) << "half of the 160 steps after";
  EXPECT_NEAR(Rate("polynomial { power: 1 }" + warmup, 120), 0.2, kTolerance);
  EXPECT_NEAR(Rate("step { every_epochs: 3 }" + warmup, 59), 0.4, kTolerance);
  EXPECT_NEAR(Rate("step { every_epochs: 3 }" + warmup, 60), 0.04, kTolerance);
}

TEST(WarmupTest, MayOutlastTheRun) {
  EXPECT_NEAR(Rate("warmup { epochs: 20 }", 199), 0.4 * 199 / 400, kTolerance);
  EXPECT_NEAR(Rate("warmup { epochs: 10 }", 199), 0.4 * 199 / 200, kTolerance);
}

TEST(ScheduleTest, TakesFractionalEpochs) {
  const OptimConfig config = ParseOptim("learning_rate: 1 multi_step { at_epochs: 2 }");
  EXPECT_EQ(LearningRate(config, 4, 20, 2.5), 1);
  EXPECT_NEAR(LearningRate(config, 5, 20, 2.5), 0.1, kTolerance);
}

TEST(ScheduleTest, DescribesItself) {
  const auto describe = [](const char* text) {
    return DescribeSchedule(ParseOptim(std::string("learning_rate: 0.2 ") + text));
  };
  EXPECT_EQ(describe("constant {}"), "constant 0.2");
  EXPECT_EQ(describe("warmup { epochs: 2 }"), "cosine from 0.2 after 2 epochs of warm-up");
  EXPECT_EQ(DescribeSchedule(ParseOptim("learning_rate: 1.9798989873223332")),
            "cosine from 1.9799");
  EXPECT_EQ(describe("step {}"), "0.2 times 0.1 every 30 epochs");
  EXPECT_EQ(describe("multi_step { at_epochs: [3, 4.5] }"), "0.2 times 0.1 at epochs 3, 4.5");
  EXPECT_EQ(describe("polynomial {}"), "polynomial of power 2 from 0.2");
  EXPECT_EQ(describe("one_cycle {}"), "one cycle up to 0.2");
}

class ScheduleValidationTest : public testing::TestWithParam<BadConfig> {};

TEST_P(ScheduleValidationTest, PointsAtTheField) { ExpectRefused(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Fields, ScheduleValidationTest,
    testing::Values(BadConfig{"learning_rate: 0", "2:", "learning_rate is 0; it must be"},
                    BadConfig{"learning_rate: nan", "2:", "learning_rate is nan"},
                    BadConfig{"learning_rate: inf", "2:", "learning_rate is inf"},
                    BadConfig{"warmup {\n  epochs: -1\n}", "3:", "epochs is -1"},
                    BadConfig{"warmup { start_fraction: 1.5 }", "2:", "start_fraction is 1.5"},
                    BadConfig{"step { every_epochs: 0 }", "2:", "every_epochs is 0"},
                    BadConfig{"step { gamma: -0.1 }", "2:", "gamma is -0.1"},
                    BadConfig{"multi_step {}", "2:", "multi_step has no marks"},
                    BadConfig{"multi_step {\n  at_epochs: 3\n  at_epochs: 3\n}",
                              "4:", "greater than the mark before"},
                    BadConfig{"multi_step { at_epochs: -3 }", "2:", "at_epochs[0] is -3"},
                    BadConfig{"multi_step { at_epochs: 1 gamma: 0 }", "2:", "gamma is 0"},
                    BadConfig{"polynomial { power: 0 }", "2:", "power is 0"},
                    BadConfig{"polynomial { end_fraction: 2 }",
                              "2:", "end_fraction is 2; it must be from 0 to 1"},
                    BadConfig{"cosine {\n  end_fraction: -0.1\n}", "3:", "end_fraction is -0.1"},
                    BadConfig{"one_cycle { rise_fraction: 1 }", "2:", "rise_fraction is 1"},
                    BadConfig{"one_cycle { start_fraction: nan }", "2:", "start_fraction is nan"},
                    BadConfig{"one_cycle { end_fraction: 1.1 }", "2:", "end_fraction is 1.1"}));

TEST(ScheduleValidationTest, AcceptsTheEdgesOfTheRanges) {
  for (const char* text :
       {"constant {}", "step {}", "multi_step { at_epochs: 0 at_epochs: 1 }", "polynomial {}",
        "cosine { end_fraction: 1 }", "one_cycle { rise_fraction: 0 start_fraction: 1 }",
        "warmup { epochs: 0 start_fraction: 1 }"}) {
    EXPECT_EQ(ValidationMessage(text), "") << text;
  }
}

TEST(ScheduleTest, ReductionIsRelativeToThePeakWithoutWarmup) {
  const auto reduction = [](const std::string& text, int64_t step) {
    return RateReduction(ParseOptim("learning_rate: 0.4 " + text), step, kTotalSteps,
                         kStepsPerEpoch);
  };
  for (const int64_t step : {0, 50, 199}) EXPECT_EQ(reduction("constant {}", step), 1);
  EXPECT_EQ(reduction("warmup { epochs: 5 } constant {}", 3), 1);
  EXPECT_EQ(reduction("step { every_epochs: 3 gamma: 0.5 }", 59), 1);
  EXPECT_NEAR(reduction("step { every_epochs: 3 gamma: 0.5 }", 120), 4, kTolerance);
  EXPECT_EQ(reduction("step { every_epochs: 3 gamma: 2 }", 120), 1);
  EXPECT_NEAR(reduction("cosine {}", 100), 2, kTolerance);
  EXPECT_EQ(reduction("polynomial {}", 200), std::numeric_limits<double>::infinity());
  const std::string cycle = "one_cycle { rise_fraction: 0.5 start_fraction: 0.1 end_fraction: 0 }";
  for (const int64_t step : {0, 30, 99, 100}) EXPECT_EQ(reduction(cycle, step), 1) << step;
  EXPECT_NEAR(reduction(cycle, 150), 2, kTolerance);
}

}  // namespace
}  // namespace ringtail
