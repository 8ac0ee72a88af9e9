#include "optim/batch_scaling.h"

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

ScaledOptim Scale(const std::string& text, int64_t global, int64_t steps_per_epoch = 39,
                  int64_t rank = 64) {
  return ScaleToBatch(ParseOptim("learning_rate: 0.1 " + text),
                      {.rank = rank, .global = global, .steps_per_epoch = steps_per_epoch});
}

double RateAt(const ScaledOptim& scaled, int64_t step, int64_t steps_per_epoch) {
  return LearningRate(scaled.config, step, 1000, static_cast<double>(steps_per_epoch));
}

TEST(BatchScalingTest, LinearMultipliesTheRateByTheBatch) {
  const ScaledOptim scaled = Scale("warmup { epochs: 5 } batch_scaling { rule: LINEAR }", 1024);
  EXPECT_NEAR(scaled.config.learning_rate(), 1.6, kTolerance);
  EXPECT_EQ(scaled.summary,
            "learning rate 0.1 at batch 64 -> 1.6 at batch 1024 (linear), "
            "warm-up 5 epochs = 195 steps from 0.1");
  EXPECT_THAT(scaled.warnings, IsEmpty());
}

TEST(BatchScalingTest, SquareRootKeepsTheNoise) {
  const ScaledOptim scaled =
      Scale("batch_scaling { rule: SQUARE_ROOT reference_batch: 256 }", 1024);
  EXPECT_NEAR(scaled.config.learning_rate(), 0.2, kTolerance);
  EXPECT_EQ(scaled.summary,
            "learning rate 0.1 at batch 256 -> 0.2 at batch 1024 (square root), no warm-up");
}

// 0.995^4: four batches of the reference in a step.
TEST(BatchScalingTest, AveragesSpanAsManyImages) {
  const ScaledOptim scaled =
      Scale("ema_decay: 0.995 batch_scaling { rule: SQUARE_ROOT reference_batch: 256 }", 1024);
  EXPECT_NEAR(scaled.config.ema_decay(), 0.995 * 0.995 * 0.995 * 0.995, kTolerance);
  EXPECT_THAT(scaled.summary, HasSubstr(", ema_decay 0.995 -> 0.98015"));
  EXPECT_EQ(Scale("ema_decay: 0.995", 1024).config.ema_decay(), 0.995) << "nothing scales";
}

// Four times as many images, half the rate; a quarter, twice the rate; the batch does not matter.
TEST(BatchScalingTest, ALongerRunHasALowerRate) {
  const auto scale = [](int64_t batch, int64_t steps_per_epoch, double epochs) {
    return ScaleToBatch(
        ParseOptim("learning_rate: 1.4 warmup { epochs: 1 } batch_scaling { rule: SQUARE_ROOT "
                   "reference_batch: 256 reference_images: 320000 }"),
        {.rank = 256, .global = batch, .steps_per_epoch = steps_per_epoch, .epochs = epochs});
  };
  const ScaledOptim longer = scale(256, 500, 10);
  EXPECT_NEAR(longer.config.learning_rate(), 0.7, kTolerance);
  EXPECT_EQ(longer.summary, "learning rate 1.4 for 320000 images -> 0.7 for 1280000 (square root)");
  EXPECT_EQ(longer.config.warmup().start_fraction(), 0);
  const ScaledOptim larger = scale(1024, 125, 10);
  EXPECT_NEAR(larger.config.learning_rate(), 1.4, kTolerance);
  EXPECT_THAT(larger.summary, HasSubstr("learning rate 1.4 at batch 256 -> 2.8 at batch 1024 "));
  EXPECT_THAT(larger.summary,
              HasSubstr("; learning rate 2.8 for 320000 images -> 1.4 for 1280000 (square root)"));
  for (const double epochs : {0.0, 2.5}) {  // unknown; those of the reference
    EXPECT_EQ(scale(256, 500, epochs).config.learning_rate(), 1.4) << epochs;
    EXPECT_EQ(scale(256, 500, epochs).summary, "");
  }
  const ScaledOptim shorter = scale(256, 625, 1.28);
  EXPECT_NEAR(shorter.config.learning_rate(), 1.75, kTolerance);
  EXPECT_EQ(shorter.summary,
            "learning rate 1.4 for 320000 images -> 1.75 for 204800 (square root)");
  const ScaledOptim shortest = scale(256, 2, 1);
  EXPECT_NEAR(shortest.config.learning_rate(), 2.8, kTolerance);
  EXPECT_EQ(shortest.summary,
            "learning rate 1.4 for 320000 images -> 2.8 for 512 (the most for a short run)");
}

TEST(BatchScalingTest, AShortRunFromTrainedWeightsHasNoHigherRate) {
  const auto rate = [](int64_t steps_per_epoch) {
    return ScaleToBatch(ParseOptim("learning_rate: 1.4 batch_scaling { rule: SQUARE_ROOT "
                                   "reference_batch: 256 reference_images: 320000 }"),
                        {.rank = 256,
                         .global = 256,
                         .steps_per_epoch = steps_per_epoch,
                         .epochs = 10,
                         .has_weights = true})
        .config.learning_rate();
  };
  EXPECT_EQ(rate(2), 1.4);
  EXPECT_NEAR(rate(500), 0.7, kTolerance);
}

// Of 10 epochs it would be 0.7, as above.
TEST(BatchScalingTest, ARunThatIsMadeLongerKeepsItsRate) {
  const auto scale = [](double epochs) {
    return ScaleToBatch(
        ParseOptim("learning_rate: 1.4 batch_scaling { rule: SQUARE_ROOT reference_batch: 256 "
                   "reference_images: 320000 begun_epochs: 10 }"),
        {.rank = 256, .global = 256, .steps_per_epoch = 500, .epochs = epochs});
  };
  for (const double epochs : {5, 10, 40}) {
    EXPECT_NEAR(scale(epochs).config.learning_rate(), 0.7, kTolerance) << epochs;
  }
  EXPECT_EQ(scale(40).summary,
            "learning rate 1.4 for 320000 images -> 0.7 for 1280000 of the 10 epochs that the run "
            "began with (square root)");
  EXPECT_EQ(scale(10).summary,
            "learning rate 1.4 for 320000 images -> 0.7 for 1280000 (square root)");
}

TEST(BatchScalingTest, TheRateFollowsTheLengthOnlyWhereARuleScalesIt) {
  const auto follows = [](const std::string& text) {
    return RateFollowsLength(ParseOptim("batch_scaling { " + text + " }"));
  };
  EXPECT_TRUE(follows("rule: LINEAR reference_images: 9"));
  EXPECT_FALSE(follows("rule: LINEAR"));
  EXPECT_FALSE(follows("reference_images: 9"));
}

TEST(BatchScalingTest, WithoutARuleTheRateIsForAnyRun) {
  const ScaledOptim scaled = ScaleToBatch(
      ParseOptim("learning_rate: 1.4 batch_scaling { rule: NONE reference_images: 320000 }"),
      {.rank = 256, .global = 256, .steps_per_epoch = 500, .epochs = 10});
  EXPECT_EQ(scaled.config.learning_rate(), 1.4);
  EXPECT_EQ(scaled.summary, "");
}

// Ranks that take steps of their own: the rate fits a rank's 32 images, a step is of 256.
TEST(BatchScalingTest, AveragesFollowTheStepsOfAllRanks) {
  const OptimConfig config =
      ParseOptim("ema_decay: 0.99 batch_scaling { rule: LINEAR reference_batch: 128 }");
  const ScaledOptim scaled = ScaleToBatch(
      config, {.rank = 32, .global = 32, .step = 256, .steps_per_epoch = 39, .epochs = 1});
  EXPECT_NEAR(scaled.config.ema_decay(), 0.99 * 0.99, kTolerance);
}

TEST(BatchScalingTest, ASmallerBatchHasASmallerRate) {
  const ScaledOptim scaled =
      Scale("warmup { epochs: 1 } batch_scaling { rule: LINEAR reference_batch: 256 }", 64);
  EXPECT_NEAR(scaled.config.learning_rate(), 0.025, kTolerance);
  EXPECT_EQ(scaled.config.warmup().start_fraction(), 0) << "from 0, as ever";
}

TEST(BatchScalingTest, TheReferenceBatchChangesNothingSilently) {
  for (const char* rule : {"", "batch_scaling { rule: LINEAR }"}) {
    const OptimConfig config =
        ParseOptim(std::string("learning_rate: 0.1 warmup { epochs: 2 } ") + rule);
    const ScaledOptim scaled =
        ScaleToBatch(config, {.rank = 64, .global = 64, .steps_per_epoch = 3});
    EXPECT_EQ(scaled.config.SerializeAsString(), config.SerializeAsString());
    EXPECT_EQ(scaled.summary, "");
    EXPECT_THAT(scaled.warnings, IsEmpty());
  }
}

TEST(BatchScalingTest, WarmupGoesFromTheRateOfTheReferenceToThatOfTheBatch) {
  for (const char* rule : {"LINEAR", "SQUARE_ROOT"}) {
    const ScaledOptim scaled = Scale(
        std::string("constant {} warmup { epochs: 5 } batch_scaling { rule: ") + rule + " }", 1024);
    const double rate = scaled.config.learning_rate();
    EXPECT_GT(rate, 0.3);
    EXPECT_NEAR(RateAt(scaled, 0, 39), 0.1, kTolerance) << rule;
    EXPECT_NEAR(RateAt(scaled, 39, 39), 0.1 + (rate - 0.1) / 5, kTolerance) << rule;
    EXPECT_NEAR(RateAt(scaled, 195, 39), rate, kTolerance) << rule;
  }
}

TEST(BatchScalingTest, AGivenStartFractionStays) {
  const ScaledOptim scaled =
      Scale("warmup { epochs: 5 start_fraction: 0 } batch_scaling { rule: LINEAR }", 1024);
  EXPECT_EQ(RateAt(scaled, 0, 39), 0);
}

TEST(BatchScalingTest, WarnsWhenNothingScales) {
  for (const int64_t global : {128, 1024, 32, 8}) {
    const ScaledOptim scaled = Scale("", global);
    EXPECT_THAT(scaled.warnings, ElementsAre(HasSubstr("nothing scales it"))) << global;
    EXPECT_EQ(scaled.config.learning_rate(), 0.1);
    EXPECT_THAT(scaled.summary, HasSubstr("-> 0.1 at batch " + std::to_string(global)));
    EXPECT_THAT(scaled.summary, HasSubstr("not scaled"));
  }
}

TEST(BatchScalingTest, DoesNotWarnWhereSomethingScalesOrLittleChanges) {
  EXPECT_THAT(Scale("", 127).warnings, IsEmpty());
  EXPECT_THAT(Scale("", 33).warnings, IsEmpty());
  EXPECT_THAT(Scale("batch_scaling { reference_batch: 1024 }", 1024).warnings, IsEmpty());
  for (const char* text : {"lars {}", "lamb {}", "muon {}", "batch_scaling { rule: LINEAR }",
                           "batch_scaling { rule: SQUARE_ROOT }"}) {
    EXPECT_THAT(Scale(text, 1024).warnings, IsEmpty()) << text;
  }
}

TEST(BatchScalingTest, WarnsWhenALargeBatchLeavesFewSteps) {
  const std::string linear = "batch_scaling { rule: LINEAR }";
  EXPECT_THAT(Scale(linear, 2048, 9).warnings, ElementsAre(HasSubstr("leaves 9 steps")));
  EXPECT_THAT(Scale(linear, 2048, 10).warnings, IsEmpty());
  EXPECT_THAT(Scale(linear, 64, 9).warnings, IsEmpty()) << "few images, not a large batch";
}

TEST(BatchScalingTest, AShortWarmupIsStretched) {
  const std::string text = "constant {} batch_scaling { rule: LINEAR } warmup { min_steps: 100 ";
  const ScaledOptim scaled = Scale(text + "epochs: 2 }", 1024, 20);
  EXPECT_THAT(scaled.warnings,
              ElementsAre("a warm-up of 2 epochs would be 40 steps; stretched to 100 "
                          "(optim.warmup.min_steps)"));
  EXPECT_THAT(scaled.summary, HasSubstr("warm-up 5 epochs = 100 steps"));
  EXPECT_LT(RateAt(scaled, 99, 20), 1.6);
  EXPECT_NEAR(RateAt(scaled, 100, 20), 1.6, kTolerance);
  // Long enough, and fractions of an epoch are rounded to whole steps.
  EXPECT_THAT(Scale(text + "epochs: 5 }", 1024, 20).warnings, IsEmpty());
  for (const int64_t steps : {3, 7, 11, 19, 39}) {
    const ScaledOptim odd = Scale(text + "}", 64, steps);
    EXPECT_LT(RateAt(odd, 99, steps), 0.1) << steps;
    EXPECT_EQ(RateAt(odd, 100, steps), 0.1) << steps;
  }
}

TEST(BatchScalingTest, WarnsOfAWarmupLongerThanTheRun) {
  const auto warnings = [](double epochs) {
    const OptimConfig config =
        ParseOptim("batch_scaling { rule: LINEAR } warmup { min_steps: 100 }");
    return ScaleToBatch(config,
                        {.rank = 64, .global = 1024, .steps_per_epoch = 20, .epochs = epochs})
        .warnings;
  };
  EXPECT_THAT(warnings(4), ElementsAre(HasSubstr("the run ends before, after 80 steps")));
  EXPECT_THAT(warnings(6), ElementsAre(testing::Not(HasSubstr("ends before"))));
}

TEST(BatchScalingTest, NamesTheFieldOutOfRange) {
  EXPECT_THAT(ValidationMessage("batch_scaling {\n  reference_batch: -1\n}"),
              HasSubstr("run.textproto:3:3: reference_batch is -1; it must be finite and at least "
                        "0"));
  EXPECT_THAT(ValidationMessage("batch_scaling { reference_images: -1 }"),
              HasSubstr("reference_images is -1"));
  EXPECT_THAT(ValidationMessage("batch_scaling { begun_epochs: 1e7 }"),
              HasSubstr("begun_epochs is 10000000; it must be from 0 to 1000000"));
  EXPECT_THAT(ValidationMessage("warmup { min_steps: -5 }"),
              HasSubstr("run.textproto:2:10: min_steps is -5"));
  EXPECT_EQ(ValidationMessage("batch_scaling { rule: NONE reference_batch: 0 }"), "");
}

}  // namespace
}  // namespace ringtail
