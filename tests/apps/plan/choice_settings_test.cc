// The fields that make a run train as a choice says.
#include "apps/plan/choice_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "apps/config/class_outputs.h"
#include "apps/config/run_config.h"
#include "core/config/config_override.h"
#include "dist/compression/scheme_choice.h"
#include "dist/config_check.h"
#include "dist/planner/facts_file.h"
#include "dist/planner/step_simulator.h"
#include "optim/batch_scaling.h"

namespace ringtail {
namespace {

using testing::ElementsAre;

PlannerFacts Facts() {
  return ParseFacts(R"(
      cores: 1
      parameter { name: "w" dimension: 10 dimension: 20 kind: LINEAR_WEIGHT }
      step { batch: 64 forward_s: 0.02 backward_s: 0.04 finish_s: 0.04 }
      scheme { name: "linear8" compression { scheme { linear8 {} } } encode_s: 1e-3 decode_s: 1e-3 })",
                    "facts")
      .value();
}

RunConfig Config() {
  RunConfig config;
  config.mutable_train()->set_batch(256);
  config.mutable_train()->set_accumulation(4);
  config.mutable_optim()->mutable_batch_scaling()->set_rule(BatchScalingConfig::SQUARE_ROOT);
  return config;
}

RunConfig DefaultConfig(const std::vector<std::string>& overrides = {}) {
  return LoadRunConfig("", overrides).value().config;
}

Prediction Planned(const Choice& choice) {
  return StepSimulator(Facts(), {.hosts = 8}).Simulate(choice).value();
}

TEST(SettingsOfTest, StepsOfAllRanks) {
  const Prediction dense = Planned({.hosts = 4, .global_batch = 512});
  EXPECT_THAT(SettingsOf(dense, Facts(), Config()),
              ElementsAre("train.batch=128", "train.accumulation=2",
                          "optim.batch_scaling.reference_batch=256"));
}

// A config without batch_scaling states its rate for its batch just as well.
TEST(SettingsOfTest, TheRateIsForTheBatchOfTheConfig) {
  RunConfig config = Config();
  config.mutable_optim()->clear_batch_scaling();
  const std::vector<std::string> settings =
      SettingsOf(Planned({.hosts = 4, .global_batch = 256}), Facts(), config);
  EXPECT_THAT(settings, testing::Contains("optim.batch_scaling.reference_batch=256"));
  for (const std::string& setting : settings) {
    ASSERT_TRUE(ApplyOverride(setting, &config, nullptr).ok()) << setting;
  }
  const ScaledOptim scaled =
      ScaleToBatch(config.optim(), {.rank = 64, .global = 256, .steps_per_epoch = 1000});
  EXPECT_THAT(scaled.warnings, testing::IsEmpty());
}

// 258 images for two hosts are 129 each, in three parts of at most 64; for three 86, in two.
TEST(SettingsOfTest, PartsAreOfEqualSize) {
  const Prediction two = Planned({.hosts = 2, .global_batch = 258});
  EXPECT_THAT(SettingsOf(two, Facts(), Config()),
              ElementsAre("train.batch=129", "train.accumulation=3", testing::_));
  const Prediction three = Planned({.hosts = 3, .global_batch = 255});
  EXPECT_THAT(SettingsOf(three, Facts(), Config()),
              ElementsAre("train.batch=86", "train.accumulation=2", testing::_));
}

TEST(SettingsOfTest, LocalStepsThatAreCompressed) {
  const Prediction local{.choice = {.hosts = 8,
                                    .global_batch = 250,
                                    .scheme = "linear8",
                                    .period = 4,
                                    .overlap = true},
                         .ranks = 8};
  EXPECT_THAT(
      SettingsOf(local, Facts(), Config()),
      ElementsAre("train.batch=32", "train.accumulation=1",
                  "optim.batch_scaling.reference_batch=256", "dist.local.period=4",
                  "dist.local.overlap=true", "dist.local.compression={ scheme { linear8 { } } }"));
}

// In rounds running statistics travel at the end of each, and a config that says otherwise is refused.
TEST(SettingsOfTest, SchemesOfStepsAreValidInRounds) {
  PlannerFacts facts = Facts();
  facts.mutable_scheme(0)->mutable_compression()->set_statistics_every_steps(4);
  Prediction choice{.choice = {.hosts = 8, .global_batch = 256, .scheme = "linear8"}, .ranks = 8};
  EXPECT_THAT(SettingsOf(choice, facts, DefaultConfig()),
              testing::Contains(testing::HasSubstr("statistics_every_steps: 4")));
  choice.choice.period = 4;
  const auto loaded = LoadRunConfig("", SettingsOf(choice, facts, DefaultConfig()));
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
}

TEST(SettingsOfTest, WhatTheConfigHasAndTheChoiceDoesWithoutIsDropped) {
  RunConfig config = Config();
  config.mutable_dist()->mutable_local()->set_period(8);
  const Prediction dense{.choice = {.hosts = 8, .global_batch = 256}, .ranks = 8};
  const std::vector<std::string> without_rounds = SettingsOf(dense, Facts(), config);
  EXPECT_THAT(without_rounds, testing::Contains("dist.local={}"));
  config.mutable_dist()->clear_local();
  config.mutable_dist()->mutable_compression()->mutable_scheme()->mutable_hylo();
  const std::vector<std::string> without_codes = SettingsOf(dense, Facts(), config);
  EXPECT_THAT(without_codes, testing::Contains("dist.compression={}"));
  Prediction coded = dense;
  coded.choice.scheme = "linear8";
  EXPECT_THAT(SettingsOf(coded, Facts(), config),
              testing::Not(testing::Contains("dist.compression={}")));
  // The fields do what they are meant to.
  RunConfig dropped = Config();
  dropped.mutable_dist()->mutable_local()->set_period(8);
  dropped.mutable_dist()->mutable_local()->mutable_compression()->mutable_scheme()->mutable_hylo();
  dropped.mutable_dist()->mutable_compression()->mutable_scheme()->mutable_hylo();
  for (const char* const setting : {"dist.local={}", "dist.compression={}"}) {
    ASSERT_TRUE(ApplyOverride(setting, &dropped, nullptr).ok()) << setting;
  }
  EXPECT_FALSE(UsesLocalRounds(dropped.dist()));
  EXPECT_FALSE(CompressesAnything(dropped.dist().compression()));
}

TEST(SettingsOfTest, AlgorithmAndBucketsWhereTheConfigHasOthers) {
  const Prediction choice{.choice = {.hosts = 2,
                                     .global_batch = 64,
                                     .algorithm = "ring",
                                     .buckets = {.bytes = 1 << 20, .end_bytes = 1 << 18}},
                          .ranks = 2};
  RunConfig config = Config();
  EXPECT_THAT(SettingsOf(choice, Facts(), config),
              ElementsAre("train.batch=32", "train.accumulation=1",
                          "optim.batch_scaling.reference_batch=256", "dist.algorithm=\"ring\"",
                          "dist.bucket_kib=1024", "dist.end_bucket_kib=256"));
  config.mutable_dist()->set_algorithm("ring");
  config.mutable_dist()->set_bucket_kib(1024);
  config.mutable_dist()->set_end_bucket_kib(256);
  EXPECT_THAT(SettingsOf(choice, Facts(), config),
              ElementsAre("train.batch=32", "train.accumulation=1",
                          "optim.batch_scaling.reference_batch=256"));
}

TEST(SettingsOfTest, OneRankTakesTheBatchAndExchangesNothing) {
  const Prediction one = Planned({.global_batch = 256, .scheme = "linear8"});
  RunConfig config = Config();
  config.mutable_optim()->mutable_batch_scaling()->set_reference_batch(128);
  EXPECT_THAT(SettingsOf(one, Facts(), config),
              ElementsAre("train.batch=256", "train.accumulation=4"));
}

TEST(SpaceOfTest, HasBatchBucketsAndAlgorithmOfTheConfig) {
  RunConfig config = Config();
  config.mutable_dist()->set_algorithm("ring");
  config.mutable_dist()->set_bucket_kib(1);
  const SearchSpace space = SpaceOf(config);
  EXPECT_THAT(space.global_batches, ElementsAre(256));
  EXPECT_THAT(space.algorithms, ElementsAre("ring"));
  ASSERT_EQ(space.buckets.size(), 1);
  EXPECT_EQ(space.buckets[0].bytes, 1024);
}

// What sends a hundredth of the gradient has been shown with Muon alone.
TEST(SpaceOfTest, HasTheSchemesThatAreShownForNetworkAndOptimizer) {
  RunConfig config = DefaultConfig();
  EXPECT_THAT(SpaceOf(config).schemes, ElementsAre("dense", "linear8", "hylo", "top_k 1%"));
  config.mutable_optim()->mutable_sgd();
  EXPECT_THAT(SpaceOf(config).schemes, ElementsAre("dense", "linear8"));
}

TEST(TrainedNetOfTest, TheDefaultNetworkIsKnownByItsLayers) {
  EXPECT_TRUE(TrainedNetOf(DefaultConfig()).is_default);
  EXPECT_TRUE(TrainedNetOf(DefaultConfig({"net.name=pets", "net.convolution=ONEDNN"})).is_default);
  EXPECT_TRUE(TrainedNetOf(DefaultConfig({"train.batch=64", "data.image_size=32"})).is_default);
  RunConfig more_classes = DefaultConfig();
  ASSERT_TRUE(FitOutputsToClasses(37, {}, &more_classes).ok());
  EXPECT_TRUE(TrainedNetOf(more_classes).is_default);
  for (const char* const edited :
       {"net.layer[layer3].residual_stage.channels=256",
        "net.layer[layer1].residual_stage.blocks=3",
        "net.layer[loss].softmax_cross_entropy.label_smoothing=0",
        "net.layer[stem.relu1].sigmoid={}", "net.layer[fc].linear.bias=false"}) {
    EXPECT_FALSE(TrainedNetOf(DefaultConfig({edited})).is_default) << edited;
  }
  RunConfig longer = DefaultConfig();
  longer.mutable_net()->add_layer()->mutable_relu();
  EXPECT_FALSE(TrainedNetOf(longer).is_default);
  EXPECT_FALSE(TrainedNetOf(RunConfig()).is_default);
  EXPECT_TRUE(TrainedNetOf(DefaultConfig({"net.layer[fc].linear.bias=true"})).is_default)
      << "a default that is written out";
}

// Of what SettingsOf has set for `prediction`, with the plan that says so.
RunConfig WithPlanOf(const Prediction& prediction, RunConfig config) {
  ringtail::Planned plan;
  for (int rank = 0; rank < static_cast<int>(prediction.ranks); ++rank) plan.add_rank(rank);
  plan.set_world(static_cast<int>(prediction.ranks));
  for (const std::string& setting : SettingsOf(prediction, Facts(), config)) {
    EXPECT_TRUE(ApplyOverride(setting, &config, nullptr).ok()) << setting;
    plan.add_set(setting);
  }
  *config.mutable_dist()->mutable_planned() = plan;
  return config;
}

TEST(WithoutPlanTest, IsTheConfigThatWasPlanned) {
  RunConfig config = Config();
  config.mutable_dist()->set_plan(DistConfig::AUTO);
  for (const Choice& choice :
       {Choice{.hosts = 4, .global_batch = 256, .scheme = "linear8"},
        Choice{.hosts = 4, .global_batch = 256, .divided = true}, Choice{.global_batch = 256}}) {
    const Prediction prediction{.choice = choice, .ranks = double(choice.hosts), .parts = 1};
    const auto before = WithoutPlan(WithPlanOf(prediction, config));
    ASSERT_TRUE(before.ok()) << before.status().message();
    EXPECT_EQ(before->train().batch(), 256);
    EXPECT_EQ(before->train().accumulation(), choice.hosts);  // parts of the planned size
    EXPECT_EQ(before->optim().batch_scaling().reference_batch(), 0);
    EXPECT_FALSE(before->dist().has_planned() || before->dist().has_compression());
    EXPECT_EQ(before->dist().model_parallel().linear(), ModelParallelConfig::WHOLE);
    EXPECT_EQ(before->dist().plan(), DistConfig::AUTO);
  }
}

// 256 images of three ranks are 86 each. Only a reference of the plan tells how many they were.
TEST(WithoutPlanTest, UnequalSharesAreTheBatchOfThePlan) {
  RunConfig config = Config();
  const Prediction three{.choice = {.hosts = 3, .global_batch = 256}, .ranks = 3, .parts = 2};
  RunConfig before = WithoutPlan(WithPlanOf(three, config)).value();
  EXPECT_EQ(before.train().batch(), 256);
  EXPECT_EQ(before.train().accumulation(), 8);  // at least six, of equal size
  config.mutable_optim()->mutable_batch_scaling()->set_reference_batch(128);
  before = WithoutPlan(WithPlanOf(three, config)).value();
  EXPECT_EQ(before.train().batch(), 258);
  EXPECT_EQ(before.optim().batch_scaling().reference_batch(), 128);
}

TEST(WithoutPlanTest, WhatWasSetSinceThenStays) {
  const Prediction two{.choice = {.hosts = 2, .global_batch = 256}, .ranks = 2};
  RunConfig planned = WithPlanOf(two, Config());
  planned.mutable_train()->set_batch(512);
  EXPECT_EQ(WithoutPlan(planned)->train().batch(), 512);
  planned.mutable_dist()->mutable_planned()->clear_set();
  planned.mutable_train()->set_batch(64);
  EXPECT_EQ(WithoutPlan(planned)->train().batch(), 64);
  planned.mutable_dist()->mutable_planned()->add_set("train.bach=3");
  EXPECT_FALSE(WithoutPlan(planned).ok());
}

}  // namespace
}  // namespace ringtail
