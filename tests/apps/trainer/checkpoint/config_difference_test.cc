#include "apps/trainer/checkpoint/config_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/apps/tiny_run.h"

namespace ringtail {
namespace {

Status Compare(const std::vector<std::string>& then, const std::vector<std::string>& now) {
  return CheckResumable(TinyConfig(then).config, TinyConfig(now).config);
}

TEST(ConfigDifferenceTest, WhereAndHowARunIsDoneMayChange) {
  EXPECT_TRUE(Compare({}, {"data.path=\"elsewhere\"", "data.workers=7", "data.cache_mib=0",
                           "train.threads=3", "train.until_accuracy=0.9",
                           "train.keep_checkpoints=5", "train.on_nan=SKIP"})
                  .ok());
}

TEST(ConfigDifferenceTest, WhatTheWeightsDependOnMayNot) {
  for (const char* change :
       {"train.batch=4", "train.seed=2", "train.epochs=5", "train.accumulation=2",
        "optim.learning_rate=0.1", "optim.adam={}", "data.augment.min_area=0.5",
        "data.split.seed=2", "train.phase[0].image_size=32",
        "net.layer[dropout].dropout.rate=0.3"}) {
    const Status status = Compare({}, {change});
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << change;
  }
  EXPECT_THAT(Compare({}, {"train.seed=2", "train.batch=4"}).message(),
              testing::AllOf(testing::HasSubstr("train.batch: 8 -> 4"),
                             testing::HasSubstr("train.seed: 1 -> 2"),
                             testing::Not(testing::HasSubstr("data.path"))));
}

TEST(ConfigDifferenceTest, ADefaultThatIsWrittenOutIsNoChange) {
  EXPECT_TRUE(Compare({}, {"train.seed=1"}).ok());
}

// follow_plan.h decides what becomes of it.
TEST(ConfigDifferenceTest, WhoPlansMayChangeAndWhatWasPlannedMayNot) {
  const std::string automatic = "dist.plan=AUTO";
  const std::string planned = "dist.planned={rank: [0, 1] world: 2}";
  EXPECT_TRUE(Compare({}, {automatic}).ok());
  EXPECT_TRUE(Compare({automatic, planned}, {planned}).ok());
  EXPECT_THAT(Compare({automatic, planned}, {}).message(), testing::HasSubstr("dist.planned"));
  EXPECT_THAT(Compare({automatic, planned, "train.batch=4"}, {planned}).message(),
              testing::HasSubstr("train.batch: 4 -> 8"));
  const std::string coded = "dist.compression.scheme.linear8={}";
  EXPECT_THAT(Compare({automatic, planned, coded}, {planned}).message(),
              testing::HasSubstr("dist.compression"));
}

// Also where all fields of both have their defaults.
TEST(ConfigDifferenceTest, WhichOneOfSeveralIsSetMayNotChange) {
  const std::string scheme = "dist.compression.scheme.";
  for (const auto& [then, now] : std::vector<std::pair<std::string, std::string>>{
           {"optim.sgd={}", "optim.muon={}"},
           {"optim.cosine={}", "optim.constant={}"},
           {scheme + "linear8={}", scheme + "bf16={}"},
           {"net.layer[relu1].relu={}", "net.layer[relu1].sigmoid={}"}}) {
    for (const auto& [one, other] : {std::pair(then, now), std::pair(now, then)}) {
      EXPECT_TRUE(Compare({one}, {one}).ok()) << one;
      EXPECT_EQ(Compare({one}, {other}).code(), StatusCode::kFailedPrecondition)
          << one << " -> " << other;
    }
  }
  EXPECT_THAT(Compare({}, {scheme + "linear8={}"}).message(), testing::HasSubstr("linear8"));
  EXPECT_THAT(Compare({}, {"optim.constant={}"}).message(), testing::HasSubstr("constant"))
      << "the rate falls";
  EXPECT_TRUE(Compare({}, {"optim.cosine={}"}).ok()) << "it does anyway";
  EXPECT_TRUE(Compare({"optim.sgd={}"}, {"optim.sgd={nesterov: false}"}).ok());
}

// A batch that is stated is not always another one.
TEST(ConfigDifferenceTest, TheReferenceBatchIsThatOfARankUnlessItIsStated) {
  const std::string stated = "optim.batch_scaling.reference_batch=8";
  EXPECT_TRUE(Compare({}, {stated}).ok());
  EXPECT_TRUE(Compare({stated}, {}).ok());
  EXPECT_FALSE(Compare({"train.batch=4"}, {"train.batch=4", stated}).ok());
  EXPECT_THAT(Compare({}, {"optim.batch_scaling.reference_batch=4"}).message(),
              testing::HasSubstr("reference_batch: 8 -> 4"));
}

TEST(ConfigDifferenceTest, EpochsMayChangeWhereTheRateDoesNotDependOnThem) {
  EXPECT_FALSE(Compare({"optim.cosine={}"}, {"optim.cosine={}", "train.epochs=5"}).ok());
  for (const char* open :
       {"optim.constant={}", "optim.step={}", "optim.multi_step={at_epochs: 1}"}) {
    EXPECT_TRUE(Compare({open}, {open, "train.epochs=5"}).ok()) << open;
  }
}

// As a run with the config `now` continues one with `then`.
class KeepBeginningTest : public testing::Test {
 protected:
  static RunConfig Kept(const std::vector<std::string>& then, const std::vector<std::string>& now) {
    const RunConfig saved = TinyConfig(then).config;
    RunConfig kept = TinyConfig(now).config;
    KeepBeginning(saved, &kept);
    const Status status = CheckResumable(saved, kept);
    EXPECT_TRUE(status.ok()) << status.message();
    return kept;
  }
  static double BegunEpochs(const RunConfig& config) {
    return config.optim().batch_scaling().begun_epochs();
  }
  // The rate depends on the 160 images of 4 epochs.
  static std::vector<std::string> Following(const std::vector<std::string>& more) {
    std::vector<std::string> set = {"optim.constant={}", "optim.batch_scaling.rule=LINEAR",
                                    "optim.batch_scaling.reference_images=40"};
    set.insert(set.end(), more.begin(), more.end());
    return set;
  }
};

TEST_F(KeepBeginningTest, WeightsAreThoseThatTheRunBeganWith) {
  const std::string weights = "train.weights=\"first\"";
  EXPECT_EQ(Kept(Following({weights}), Following({})).train().weights(), "first");
  EXPECT_EQ(Kept(Following({weights}), Following({"train.weights=\"other\""})).train().weights(),
            "first");
  EXPECT_FALSE(Kept(Following({}), Following({weights})).train().has_weights());
  EXPECT_FALSE(Kept({}, {weights}).train().has_weights());
}

TEST_F(KeepBeginningTest, WhereItDependsOnThemARunWithAndOneWithoutWeightsHaveAnotherRate) {
  const std::string weights = "train.weights=\"first\"";
  EXPECT_THAT(Compare(Following({weights}), Following({})).message(),
              testing::HasSubstr("train.weights: \"first\" -> \"\""));
  EXPECT_THAT(Compare(Following({}), Following({weights})).message(),
              testing::HasSubstr("train.weights: \"\" -> \"first\""));
  EXPECT_TRUE(Compare(Following({weights}), Following({"train.weights=\"moved\""})).ok());
  EXPECT_TRUE(Compare({weights}, {}).ok());
}

// However often the run is made longer or shorter.
TEST_F(KeepBeginningTest, TheRateStaysThatOfTheEpochsThatTheRunBeganWith) {
  const RunConfig longer = Kept(Following({}), Following({"train.epochs=8"}));
  EXPECT_EQ(BegunEpochs(longer), 4);
  RunConfig again = TinyConfig(Following({"train.epochs=6"})).config;
  KeepBeginning(longer, &again);
  EXPECT_EQ(BegunEpochs(again), 4);
  EXPECT_TRUE(CheckResumable(longer, again).ok());
  RunConfig back = TinyConfig(Following({})).config;
  KeepBeginning(longer, &back);
  EXPECT_EQ(BegunEpochs(back), 0);
  EXPECT_TRUE(CheckResumable(longer, back).ok());
  EXPECT_EQ(BegunEpochs(Kept({"optim.constant={}"}, {"optim.constant={}", "train.epochs=8"})), 0)
      << "the rate does not depend on them";
}

TEST_F(KeepBeginningTest, ARateOfOtherEpochsIsAnother) {
  EXPECT_THAT(Compare(Following({}), Following({"train.epochs=8"})).message(),
              testing::HasSubstr("begun_epochs: 4 -> 8"));
  const std::vector<std::string> other =
      Following({"train.epochs=8", "optim.batch_scaling.begun_epochs=8"});
  RunConfig now = TinyConfig(other).config;
  KeepBeginning(TinyConfig(Following({})).config, &now);
  EXPECT_THAT(CheckResumable(TinyConfig(Following({})).config, now).message(),
              testing::HasSubstr("begun_epochs: 4 -> 8"));
  EXPECT_FALSE(Compare({"optim.cosine={}"}, {"optim.cosine={}", "train.epochs=8"}).ok());
}

}  // namespace
}  // namespace ringtail
