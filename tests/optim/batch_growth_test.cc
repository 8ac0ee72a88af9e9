#include "optim/batch_growth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "optim/schedule.h"
#include "tests/optim/test_arena.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kTolerance = 1e-12;

// CIFAR-10 in batches of 128 for 200 epochs, the rate divided by 5 at epochs 60, 120 and 160, as in
// the paper's section 5.1.
constexpr int64_t kImages = 50000, kBatch = 128, kPerEpoch = kImages / kBatch;
constexpr char kBySteps[] =
    "learning_rate: 0.1 multi_step { at_epochs: [60, 120, 160] gamma: 0.2 } batch_growth {}";

GrowthRun CifarRun(int64_t most_batches, double epochs = 200) {
  return {.images_per_batch = kBatch,
          .batches_per_epoch = kPerEpoch,
          .total_batches = std::llround(epochs * kPerEpoch),
          .most_batches = most_batches};
}

std::vector<int64_t> BatchesOf(std::span<const GrowthStage> stages) {
  std::vector<int64_t> batches;
  for (const GrowthStage& stage : stages) batches.push_back(stage.batches);
  return batches;
}

// The rate of the first step that begins at or after `epoch`.
double RateAt(const OptimConfig& config, const GrowthRun& run, double epoch) {
  const std::vector<GrowthStage> stages = GrowthStages(config, run);
  const int64_t batch = std::llround(epoch * kPerEpoch);
  size_t i = stages.size() - 1;
  while (stages[i].first_batch > batch) --i;
  const int64_t k = stages[i].batches;
  const int64_t steps = (batch - stages[i].first_batch + k - 1) / k;
  return GrownRate(config, run, stages[i].first_batch + steps * k, k);
}

TEST(BatchGrowthTest, FactorsOfFiveUpToTheLargestBatchThenTheRateFalls) {
  const OptimConfig config = ParseOptim(kBySteps);
  const GrowthRun run = CifarRun(25);
  const std::vector<GrowthStage> stages = GrowthStages(config, run);
  ASSERT_THAT(BatchesOf(stages), ElementsAre(1, 5, 25));  // 128, 640, 3200
  EXPECT_EQ(stages[0].first_step, 0);
  EXPECT_EQ(stages[1].first_batch, 60 * kPerEpoch);
  EXPECT_EQ(stages[1].first_step, 60 * kPerEpoch);
  EXPECT_EQ(stages[2].first_batch, 120 * kPerEpoch);
  EXPECT_EQ(stages[2].first_step, 60 * kPerEpoch + 60 * kPerEpoch / 5);
  for (const double epoch : {0, 59, 60, 90, 119, 120, 159}) {
    EXPECT_NEAR(RateAt(config, run, epoch), 0.1, kTolerance) << epoch;
  }
  for (const double epoch : {160.1, 199.0}) {
    EXPECT_NEAR(RateAt(config, run, epoch), 0.02, kTolerance) << epoch;
  }
}

// The paper's hybrid: one growth, then the rate falls.
TEST(BatchGrowthTest, ASmallerBoundTurnsGrowthIntoDecayEarlier) {
  const OptimConfig config = ParseOptim(kBySteps);
  EXPECT_THAT(BatchesOf(GrowthStages(config, CifarRun(5))), ElementsAre(1, 5));
  EXPECT_NEAR(RateAt(config, CifarRun(5), 130), 0.02, kTolerance);
  EXPECT_NEAR(RateAt(config, CifarRun(5), 170), 0.004, kTolerance);
  // With a large bound the rate never falls.
  EXPECT_THAT(BatchesOf(GrowthStages(config, CifarRun(1000))), ElementsAre(1, 5, 25, 125));
  EXPECT_NEAR(RateAt(config, CifarRun(1000), 199), 0.1, kTolerance);
  // A bound between two factors is reached, and the rate covers the rest.
  EXPECT_THAT(BatchesOf(GrowthStages(config, CifarRun(7))), ElementsAre(1, 5, 7));
  EXPECT_NEAR(RateAt(config, CifarRun(7), 130), 0.1 * 7 / 25, kTolerance);
  EXPECT_THAT(BatchesOf(GrowthStages(config, CifarRun(1))), ElementsAre(1));
}

// The noise of the steps, rate / batch, is that of the schedule, for every schedule.
TEST(BatchGrowthTest, EveryStepHasTheNoiseOfTheSchedule) {
  for (const char* schedule :
       {"step { every_epochs: 7.3 gamma: 0.35 }", "multi_step { at_epochs: [3, 4.01] gamma: 0.03 }",
        "polynomial { power: 2 end_fraction: 0.01 }", "cosine {}", "cosine { end_fraction: 0.3 }",
        "one_cycle { rise_fraction: 0.4 }", "warmup { epochs: 5 } step { every_epochs: 3 }"}) {
    const OptimConfig config = ParseOptim(std::string("batch_growth {} ") + schedule);
    const GrowthRun run = CifarRun(11, 20);
    const std::vector<GrowthStage> stages = GrowthStages(config, run);
    ASSERT_GT(stages.size(), 1U) << schedule;
    EXPECT_EQ(stages[0].batches, 1);
    for (size_t i = 0; i < stages.size(); ++i) {
      const GrowthStage& stage = stages[i];
      const int64_t end = i + 1 < stages.size() ? stages[i + 1].first_batch : run.total_batches;
      if (i > 0) {
        EXPECT_GT(stage.batches, stages[i - 1].batches) << schedule;
      }
      EXPECT_LE(stage.batches, 11) << schedule;
      int64_t step = stage.first_step;
      for (int64_t batch = stage.first_batch; batch < end; batch += stage.batches, ++step) {
        const double reduction = RateReduction(config, batch, run.total_batches, kPerEpoch);
        // The largest whole number of batches that the schedule's rate allows.
        ASSERT_LE(stage.batches, reduction * (1 + 1e-6)) << schedule << " " << batch;
        ASSERT_GT(std::min(stage.batches + 1.0, 11.5), std::min(reduction * (1 - 1e-6), 11.0))
            << schedule << " " << batch;
        ASSERT_NEAR(
            GrownRate(config, run, batch, stage.batches) / static_cast<double>(stage.batches),
            LearningRate(config, batch, run.total_batches, kPerEpoch), kTolerance);
      }
      if (i + 1 < stages.size()) {
        EXPECT_EQ(step, stages[i + 1].first_step) << schedule;
      }
    }
  }
}

TEST(BatchGrowthTest, SmoothSchedulesGrowBatchByBatch) {
  const OptimConfig config = ParseOptim("learning_rate: 1 polynomial { power: 1 } batch_growth {}");
  const GrowthRun run{
      .images_per_batch = 4, .batches_per_epoch = 10, .total_batches = 120, .most_batches = 4};
  // 1 - u is 1/2 at batch 60, 1/3 at 80, 1/4 at 90, where the second step of three started at 89.
  const std::vector<GrowthStage> stages = GrowthStages(config, run);
  ASSERT_THAT(BatchesOf(stages), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(stages[1].first_batch, 60);
  EXPECT_EQ(stages[2].first_batch, 80);
  EXPECT_EQ(stages[3].first_batch, 92);
  EXPECT_EQ(stages[3].first_step, 60 + 10 + 4);
  EXPECT_NEAR(GrownRate(config, run, 60, 2), 1, kTolerance);
  EXPECT_NEAR(GrownRate(config, run, 78, 2), 0.7, kTolerance);
}

TEST(BatchGrowthTest, WarmupAndTheRiseOfACycleAreNoDecay) {
  const OptimConfig warm =
      ParseOptim("warmup { epochs: 10 } step { every_epochs: 5 gamma: 0.5 } batch_growth {}");
  const std::vector<GrowthStage> stages = GrowthStages(warm, CifarRun(100, 20));
  ASSERT_THAT(BatchesOf(stages), ElementsAre(1, 2, 4, 8));
  EXPECT_EQ(stages[1].first_batch, 5 * kPerEpoch);
  EXPECT_NEAR(GrownRate(warm, CifarRun(100, 20), stages[1].first_batch, 2),
              warm.learning_rate() * 0.5, kTolerance)
      << "half-way through the warm-up";
  const OptimConfig cycle = ParseOptim("one_cycle { rise_fraction: 0.5 } batch_growth {}");
  EXPECT_GT(GrowthStages(cycle, CifarRun(100, 20))[1].first_batch, 10 * kPerEpoch);
}

// Raising the number of epochs has no effect on the stages before.
TEST(BatchGrowthTest, StagesDoNotDependOnLaterOnes) {
  const OptimConfig config = ParseOptim(kBySteps);
  const std::vector<GrowthStage> whole = GrowthStages(config, CifarRun(25)),
                                 part = GrowthStages(config, CifarRun(25, 119));
  ASSERT_THAT(BatchesOf(part), ElementsAre(1, 5));
  for (size_t i = 0; i < part.size(); ++i) {
    EXPECT_EQ(part[i].first_step, whole[i].first_step);
    EXPECT_EQ(part[i].first_batch, whole[i].first_batch);
  }
}

TEST(BatchGrowthTest, TheLargestBatch) {
  const auto most = [](const std::string& growth) {
    return MostBatches(ParseOptim(growth), kBatch, kImages);
  };
  EXPECT_EQ(most("").value(), 1);
  EXPECT_EQ(most("batch_growth {}").value(), 39) << "a tenth of the images";
  EXPECT_EQ(most("batch_growth { max_batch: 3200 }").value(), 25);
  EXPECT_EQ(most("batch_growth { max_batch: 3199 }").value(), 24);
  EXPECT_EQ(most("batch_growth { max_batch: 128 }").value(), 1);
  EXPECT_EQ(most("batch_growth { max_batch: 50000 }").value(), 390);
  EXPECT_THAT(most("batch_growth { max_batch: 50001 }").status().message(),
              HasSubstr("max_batch is 50001, but there are 50000 images to train on"));
  EXPECT_THAT(most("batch_growth { max_batch: 127 }").status().message(),
              HasSubstr("max_batch is 127, but the run begins with 128"));
  EXPECT_EQ(MostBatches(ParseOptim("batch_growth {}"), 64, 100).value(), 1) << "too few images";
}

TEST(BatchGrowthTest, DescribesItself) {
  const OptimConfig config = ParseOptim(kBySteps);
  const std::vector<GrowthStage> stages = GrowthStages(config, CifarRun(25));
  EXPECT_EQ(DescribeStage(config, CifarRun(25), stages, 1),
            "epoch 60: batch 128 -> 640 in place of rate 0.1 -> 0.02 (batch_growth)");
  EXPECT_EQ(
      DescribeStage(config, CifarRun(25), stages, 2),
      "epoch 120: batch 640 -> 3200 in place of rate 0.1 -> 0.02 (batch_growth); the largest: "
      "from now on the rate falls");
  const GrowthReport report = ReportGrowth(config, CifarRun(25), stages, 29328);
  EXPECT_EQ(
      report.summary,
      "batch 128 -> 640 -> 3200 in place of lower rates, from epoch 60 on: 29328 steps instead "
      "of 78000 (batch_growth)");
  EXPECT_THAT(report.warnings, IsEmpty());
  const OptimConfig smooth = ParseOptim("batch_growth {}");
  EXPECT_THAT(ReportGrowth(smooth, CifarRun(25), GrowthStages(smooth, CifarRun(25)), 1).summary,
              HasSubstr("batch 128 -> 3200 in 24 stages in place of lower rates"));
}

TEST(BatchGrowthTest, WarnsOfNoOrTooMuchGrowth) {
  const auto warnings = [](const std::string& text, int64_t most) {
    const OptimConfig config = ParseOptim(text);
    return ReportGrowth(config, CifarRun(most), GrowthStages(config, CifarRun(most)), 1).warnings;
  };
  EXPECT_THAT(warnings(kBySteps, 1), ElementsAre(HasSubstr("twice the 128 images")));
  EXPECT_THAT(warnings("batch_growth {} cosine { end_fraction: 0.6 }", 9),
              ElementsAre(HasSubstr("does not fall to half of its peak")));
  EXPECT_THAT(warnings(kBySteps, 39), IsEmpty());
  EXPECT_THAT(warnings("batch_growth {}", 50),
              ElementsAre(HasSubstr("a batch of 6400 leaves 7 steps in an epoch")));
  EXPECT_THAT(warnings("", 1), IsEmpty());
}

TEST(BatchGrowthTest, RefusesSchedulesThatNeverFallAndNamesTheFieldOutOfRange) {
  for (const char* schedule :
       {"constant {}", "step { gamma: 1 }", "multi_step { at_epochs: 3 gamma: 2 }"}) {
    EXPECT_THAT(ValidationMessage(std::string(schedule) + " batch_growth {}"),
                HasSubstr("run.textproto:2:"))
        << schedule;
    EXPECT_THAT(ValidationMessage(std::string(schedule) + " batch_growth {}"),
                HasSubstr("this one never does"))
        << schedule;
    EXPECT_EQ(ValidationMessage(schedule), "");
  }
  EXPECT_THAT(ValidationMessage("batch_growth { max_batch: -1 }"),
              HasSubstr("max_batch is -1; it must be finite and at least 0"));
  EXPECT_EQ(ValidationMessage("batch_growth {}"), "");
}

}  // namespace
}  // namespace ringtail
