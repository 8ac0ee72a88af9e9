// What sets a plan for a run without one: the batch of one host, and what a plan refuses is left out.
#include "apps/plan/plan_flags.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "apps/config/run_config.h"

namespace ringtail {
namespace {

// The default config: 256 images a step, as its rate was found.
RunConfig Default(const std::vector<std::string>& sets = {}) {
  return LoadRunConfig("", sets).value().config;
}

// Flags of a run of `ranks` ranks.
std::string FlagsOn(int ranks, const RunConfig& config, bool local_batch = false) {
  return PlanFlags(config, BatchOfOneHost(config, int64_t{ranks} * config.train().batch()),
                   local_batch);
}

TEST(PlanFlags, ABatchThatHasGrownWithTheRanksIsThatOfOneHost) {
  EXPECT_EQ(BatchOfOneHost(Default(), 2048), 256);
  EXPECT_EQ(FlagsOn(8, Default()), "--plan auto");
  EXPECT_EQ(BatchOfOneHost(Default({"train.batch=512"}), 4096), 512) << "the user's own";
}

TEST(PlanFlags, ABatchThatWasDividedByHandIsKept) {
  EXPECT_EQ(FlagsOn(8, Default({"train.batch=32"})), "--plan auto --set train.batch=256");
  EXPECT_EQ(FlagsOn(4, Default({"train.batch=32"})), "--plan auto --set train.batch=128");
}

TEST(PlanFlags, ABatchThatWasDividedTooLittleIsThatOfTheRate) {
  EXPECT_EQ(FlagsOn(8, Default({"train.batch=64"})), "--plan auto --set train.batch=256");
}

// Nothing else is known of such a config.
TEST(PlanFlags, WithoutABatchOfTheRateItIsTheConfigs) {
  const RunConfig config = Default({"train.batch=32", "optim.batch_scaling.reference_batch=0"});
  EXPECT_EQ(FlagsOn(8, config), "--plan auto");
}

// --local-batch 16 on 8 ranks.
TEST(PlanFlags, NoMoreThanTheRunHas) {
  EXPECT_EQ(PlanFlags(Default(), BatchOfOneHost(Default(), 128), /*local_batch=*/true),
            "--plan auto --set train.batch=128, without --local-batch");
}

// 256 in the 3 parts of a batch of 96 would be refused.
TEST(PlanFlags, PartsAreEqual) {
  EXPECT_EQ(FlagsOn(8, Default({"train.batch=96", "train.accumulation=3"})),
            "--plan auto --set train.batch=256 --set train.accumulation=4");
  EXPECT_EQ(FlagsOn(8, Default({"train.batch=64", "train.accumulation=2"})),
            "--plan auto --set train.batch=256");
}

TEST(PlanFlags, WhatAPlanChoosesItselfIsLeftOut) {
  EXPECT_EQ(FlagsOn(8, Default({"dist.local.period=4"})), "--plan auto --set dist.local={}");
  EXPECT_EQ(FlagsOn(8, Default({"dist.compression.scheme.hylo={}"})),
            "--plan auto --set dist.compression={}");
  EXPECT_EQ(FlagsOn(8, Default({"dist.model_parallel.linear=AUTO"})),
            "--plan auto --set dist.model_parallel={}");
  EXPECT_EQ(FlagsOn(8, Default({"dist.asynchronous.rule=ASYNCHRONOUS"})),
            "--plan auto --set dist.asynchronous={}");
}

}  // namespace
}  // namespace ringtail
