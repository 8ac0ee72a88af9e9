// At which steps rounds end.
#include "apps/trainer/local/local_period.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/apps/tiny_run.h"

namespace ringtail {
namespace {

using testing::ElementsAre;

// 5 steps an epoch, 4 epochs; the image size changes after 10 steps.
struct PlannedRun {
  explicit PlannedRun(const std::vector<std::string>& overrides)
      : config(TinyConfig(overrides).config), plan(config, kTinyStepsPerEpoch) {}
  LocalPeriod Period() const { return {config.dist().local(), config.optim(), &plan}; }
  const RunConfig config;
  const TrainingPlan plan;
};

// The ends of all rounds.
std::vector<int64_t> Ends(const LocalPeriod& period, int64_t total) {
  std::vector<int64_t> ends;
  int64_t step = period.first_step();
  while (step < total) ends.push_back(step = period.RoundEnd(step));
  return ends;
}

TEST(LocalPeriod, RoundsEndAtChangesOfTheImageSizeAndAtTheEnd) {
  const PlannedRun run({"dist.local.period=4"});
  EXPECT_THAT(Ends(run.Period(), 20), ElementsAre(4, 8, 10, 14, 18, 20));
}

TEST(LocalPeriod, BeginsAfterTheDenseEpochs) {
  const PlannedRun run({"dist.local.period=4", "dist.local.start_epoch=1.5"});
  EXPECT_EQ(run.Period().first_step(), 8);
  EXPECT_THAT(Ends(run.Period(), 20), ElementsAre(10, 14, 18, 20));
}

// The last step begins before this epoch.
TEST(LocalPeriod, NeverBeginsIfTheRunEndsBefore) {
  const PlannedRun run({"dist.local.period=4", "dist.local.start_epoch=3.9"});
  EXPECT_EQ(run.Period().first_step(), 20);
}

TEST(LocalPeriod, EndsWhereTheBatchGrows) {
  RunConfig config = TinyConfig({"dist.local.period=3", "optim.batch_growth.max_batch=16",
                                 "optim.step.every_epochs=1", "optim.step.gamma=0.5"})
                         .config;
  config.mutable_train()->clear_phase();
  const TrainingPlan plan(config, kTinyStepsPerEpoch,
                          {.optim = config.optim(), .images_per_batch = 8, .most_batches = 2});
  ASSERT_EQ(plan.stages().size(), 2U);
  const LocalPeriod period(config.dist().local(), config.optim(), &plan);
  EXPECT_EQ(period.RoundEnd(3), 5) << "step 5 takes two batches";
}

// (alpha / rate)^2 = (0.2 / 0.1)^2 = 4, and 16 after the rate has halved.
TEST(LocalPeriod, QuadraticRuleTakesMoreStepsAsTheRateFalls) {
  const PlannedRun run({"dist.local.period=2", "dist.local.period_rule=QUADRATIC",
                        "dist.local.quadratic_alpha=0.2", "optim.learning_rate=0.1",
                        "train.epochs=12", "optim.step.every_epochs=6", "optim.step.gamma=0.5",
                        "train.phase[0].from_epoch=99"});
  EXPECT_EQ(run.Period().RoundEnd(0), 4);
  EXPECT_EQ(run.Period().RoundEnd(30), 46);
}

TEST(LocalPeriod, QuadraticRuleWaitsForTheEndOfTheWarmUp) {
  const PlannedRun run({"dist.local.period=2", "dist.local.period_rule=QUADRATIC",
                        "dist.local.quadratic_alpha=1", "optim.warmup.epochs=1"});
  EXPECT_EQ(run.Period().RoundEnd(0), 2) << "a low rate, but a rising one";
}

TEST(LocalPeriod, AutoHidesTheExchange) {
  const PlannedRun run({"dist.local.period_rule=AUTO"});
  LocalPeriod period = run.Period();
  EXPECT_EQ(period.RoundEnd(0), LocalPeriod::kFirstAuto);
  // The first exchange is not known yet; an outlier does not matter.
  for (const double exchange : {0.0, 0.05, 9.0, 0.05}) {
    period.AfterRound(0, {.step_seconds = 0.02, .exchange_seconds = exchange});
  }
  EXPECT_EQ(period.RoundEnd(0), 3) << "50 ms behind steps of 20 ms";
  EXPECT_EQ(period.decided_by().exchange_seconds, 0.05) << "the median, not the last one";
  EXPECT_EQ(period.decided_by().step_seconds, 0.02);
  // Larger images are measured again.
  for (int i = 0; i < 3; ++i) {
    period.AfterRound(10, {.step_seconds = 0.1, .exchange_seconds = 0.05});
  }
  EXPECT_EQ(period.RoundEnd(10), 11);
}

// Another measurement would change H where the run that was not stopped keeps it.
TEST(LocalPeriod, AutoKeepsWhatItHasMeasured) {
  const PlannedRun run({"dist.local.period_rule=AUTO"});
  LocalPeriod first = run.Period(), second = run.Period();
  const auto measure = [](LocalPeriod* period, int64_t begin) {
    const double exchange = begin == 0 ? 0.05 : 0.03;
    for (int i = 0; i < 3; ++i) {
      period->AfterRound(begin, {.step_seconds = 0.02, .exchange_seconds = exchange});
    }
  };
  measure(&first, 0);
  EXPECT_EQ(first.RoundEnd(0), 3);
  second.Restore(first.progress());
  measure(&second, 5);
  EXPECT_EQ(second.RoundEnd(0), 3);
  measure(&second, 10);
  EXPECT_EQ(second.RoundEnd(10), 12) << "of larger images it is measured";
}

TEST(LocalPeriod, AutoWithoutOverlapLeavesTheExchangeATenth) {
  const PlannedRun run({"dist.local.period_rule=AUTO", "dist.local.overlap=false",
                        "train.epochs=200", "train.phase[0].from_epoch=199"});
  LocalPeriod period = run.Period();
  for (int i = 0; i < 3; ++i) {
    period.AfterRound(0, {.step_seconds = 0.02, .exchange_seconds = 0.02});
  }
  EXPECT_EQ(period.RoundEnd(0), 9);
}

TEST(LocalPeriod, AutoStaysBelowThePeriodThatIsAskedFor) {
  const PlannedRun run({"dist.local.period_rule=AUTO", "dist.local.period=5"});
  LocalPeriod period = run.Period();
  for (int i = 0; i < 3; ++i) {
    period.AfterRound(0, {.step_seconds = 0.001, .exchange_seconds = 10});
  }
  EXPECT_EQ(period.RoundEnd(0), 5);
}

TEST(LocalPeriod, AutoBeginsBelowThePeriodThatIsAskedFor) {
  const PlannedRun run({"dist.local.period_rule=AUTO", "dist.local.period=2"});
  LocalPeriod period = run.Period();
  EXPECT_EQ(period.RoundEnd(0), 2);
  period.Restore({.measured = 4});
  EXPECT_EQ(period.RoundEnd(0), 2) << "a run that began with a longer one";
}

TEST(LocalPeriod, RanksThatDriftApartExchangeMoreOften) {
  const PlannedRun run({"dist.local.period=4"});
  LocalPeriod period = run.Period();
  for (int i = 0; i < LocalPeriod::kWatched - 1; ++i) period.AfterRound(0, {.cosine = -0.3});
  EXPECT_EQ(period.RoundEnd(0), 4);
  period.AfterRound(0, {.cosine = -0.2});
  EXPECT_EQ(period.RoundEnd(0), 2);
  EXPECT_NEAR(*period.decided_by().cosine, (7 * -0.3 - 0.2) / 8, 1e-12) << "not the last one";
}

TEST(LocalPeriod, ChanceDoesNotShortenRounds) {
  const PlannedRun run({"dist.local.period=4"});
  LocalPeriod period = run.Period();
  for (int i = 0; i < 3 * LocalPeriod::kWatched; ++i) {
    period.AfterRound(0, {.cosine = i % 2 == 0 ? -0.5 : 0.48});
  }
  EXPECT_EQ(period.RoundEnd(0), 4) << "the mean is below zero, but by less than its error";
}

// Behind codecs nothing is known: that is no sign of drift, nor does it end one.
TEST(LocalPeriod, RoundsWithoutACosineAreNotJudged) {
  const PlannedRun run({"dist.local.period=4", "dist.local.min_cosine=1"});
  LocalPeriod period = run.Period();
  for (int i = 0; i < 3 * LocalPeriod::kWatched; ++i) period.AfterRound(0, {});
  EXPECT_EQ(period.RoundEnd(0), 4);
  EXPECT_EQ(period.progress().watched, 0);
  for (int i = 0; i < LocalPeriod::kWatched; ++i) {
    period.AfterRound(0, {.cosine = 0.5});
    period.AfterRound(0, {});
  }
  EXPECT_EQ(period.RoundEnd(0), 2);
}

TEST(LocalPeriod, GoesOnFromWhereItWas) {
  const PlannedRun run({"dist.local.period=4"});
  LocalPeriod whole = run.Period(), first = run.Period(), second = run.Period();
  for (int i = 0; i < LocalPeriod::kWatched; ++i) {
    whole.AfterRound(0, {.cosine = -0.1 * i});
    (i < 3 ? first : second).AfterRound(0, {.cosine = -0.1 * i});
    if (i == 2) second.Restore(first.progress());
  }
  EXPECT_EQ(whole.RoundEnd(0), 2);
  EXPECT_EQ(second.RoundEnd(0), 2);
}

}  // namespace
}  // namespace ringtail
