// What a run gives up that is told to train another way: the settings, and that a config with them is valid.
#include "apps/plan/dropped_ways.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "apps/config/run_config.h"
#include "apps/plan/plan_flags.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Settings = std::vector<std::string>;

RunConfig Default(const Settings& sets) { return LoadRunConfig("", sets).value().config; }

Settings Dropped(const Settings& sets, const KeptWays& kept = {}) {
  return SettingsWithoutOtherWays(Default(sets), kept);
}

TEST(DroppedWays, NothingOfAConfigWithout) { EXPECT_THAT(Dropped({}), IsEmpty()); }

TEST(DroppedWays, EachWay) {
  EXPECT_THAT(Dropped({"dist.local.period=8"}), ElementsAre("dist.local={}"));
  EXPECT_THAT(Dropped({"dist.compression.scheme.hylo={}"}), ElementsAre("dist.compression={}"));
  EXPECT_THAT(Dropped({"dist.asynchronous.rule=STALE_SYNC", "dist.asynchronous.bound=5"}),
              ElementsAre("dist.asynchronous={}"));
  EXPECT_THAT(Dropped({"dist.model_parallel.linear=ALL"}), ElementsAre("dist.model_parallel={}"));
  EXPECT_THAT(Dropped({"dist.model_parallel.pipeline.stages=2"}),
              ElementsAre("dist.model_parallel={}"));
}

TEST(DroppedWays, WhatIsKept) {
  EXPECT_THAT(Dropped({"dist.local.period=8"}, {.rounds = true}), IsEmpty());
  EXPECT_THAT(Dropped({"dist.compression.scheme.hylo={}"}, {.compression = true}), IsEmpty());
  EXPECT_THAT(Dropped({"dist.model_parallel.linear=ALL"}, {.divided_layers = true}), IsEmpty());
  EXPECT_THAT(Dropped({"dist.model_parallel.pipeline.stages=2"}, {.divided_layers = true}),
              ElementsAre("dist.model_parallel={}"));
}

// Each keeps the momentum in place of the optimizer, which would else be sgd without any.
TEST(DroppedWays, MomentumIsGivenBackToTheOptimizer) {
  const Settings dgc = {"optim.sgd.momentum=0", "dist.compression.scheme.dgc.momentum=0.8"};
  EXPECT_THAT(Dropped(dgc), ElementsAre("dist.compression={}", "optim.sgd.momentum=0.8"));
  EXPECT_THAT(Dropped(dgc, {.compression = true}), ElementsAre("optim.sgd.momentum=0.8"));
  EXPECT_THAT(Dropped(dgc, {.compression = true, .momentum = true}), IsEmpty());
  const Settings nesterov = {"optim.sgd.momentum=0", "dist.compression.scheme.dgc.nesterov=true"};
  EXPECT_THAT(Dropped(nesterov), ElementsAre("dist.compression={}", "optim.sgd.momentum=0.9",
                                             "optim.sgd.nesterov=true"));
  EXPECT_THAT(Dropped({"optim.sgd.momentum=0", "dist.asynchronous.rule=DANA"}),
              ElementsAre("dist.asynchronous={}", "optim.sgd.momentum=0.9"));
  EXPECT_THAT(Dropped({"optim.sgd.momentum=0", "dist.asynchronous.rule=ASYNCHRONOUS"}),
              ElementsAre("dist.asynchronous={}"))
      << "it never had any";
}

// What a run is told to add is what it takes: with every way, in parts that divide no power of two.
TEST(DroppedWays, TheFlagsOfAPlanAreValid) {
  const std::vector<Settings> ways = {
      {},
      {"dist.local.period=8"},
      {"dist.local.period=8", "dist.local.compression.scheme.linear8={}"},
      {"dist.compression.scheme.hylo={}"},
      {"optim.sgd.momentum=0", "dist.compression.scheme.dgc={}"},
      {"optim.sgd.momentum=0", "dist.asynchronous.rule=DANA"},
      {"dist.asynchronous.rule=STALE_SYNC", "dist.asynchronous.bound=5"},
      {"dist.model_parallel.linear=ALL"},
      {"dist.model_parallel.pipeline.stages=2"},
  };
  for (Settings set : ways) {
    for (const char* const batch : {"train.batch=36", "train.batch=96"}) {
      set.insert(set.end(), {batch, "train.accumulation=3"});
      const RunConfig config = Default(set);
      const std::string flags =
          PlanFlags(config, BatchOfOneHost(config, 4 * config.train().batch()),
                    /*local_batch=*/false);
      set.emplace_back("dist.plan=AUTO");
      const std::string separator = " --set ";
      for (size_t at = flags.find(separator); at != std::string::npos;) {
        const size_t next = flags.find(separator, at + 1);
        set.push_back(flags.substr(at + separator.size(), next - at - separator.size()));
        at = next;
      }
      const auto loaded = LoadRunConfig("", set);
      EXPECT_TRUE(loaded.ok()) << flags << ": " << loaded.status().message();
    }
  }
}

}  // namespace
}  // namespace ringtail
