// dist.plan: AUTO: what a choice sets, and a plan that is made by ranks together.
#include "apps/plan/auto_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/config/text_config.h"
#include "dist/planner/facts_file.h"
#include "dist/transport/in_process.h"
#include "tests/apps/tiny_run.h"

namespace ringtail {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

PlannerFacts Facts() {
  return ParseFacts(R"(
      cores: 1
      parameter { name: "w" dimension: 10 dimension: 20 kind: LINEAR_WEIGHT }
      step { batch: 32 forward_s: 0.02 backward_s: 0.04 finish_s: 0.04 }
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

TEST(SettingsOfTest, StepsOfAllRanks) {
  const Prediction dense{.choice = {.hosts = 4, .global_batch = 512}, .ranks = 4};
  EXPECT_THAT(SettingsOf(dense, Facts(), Config()),
              ElementsAre("train.batch=128", "train.accumulation=2",
                          "optim.batch_scaling.reference_batch=256"));
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

TEST(WithPlanTest, TheConfigOfTheRunHoldsSettingsAndPlan) {
  Planned plan;
  plan.add_rank(0);
  plan.add_rank(2);
  plan.set_world(3);
  for (const char* set : {"train.batch=3", "dist.local.period=4"}) plan.add_set(set);
  const LoadedConfig loaded = TinyConfig({"dist.plan=AUTO"});
  const auto planned = WithPlan(loaded, plan);
  ASSERT_TRUE(planned.ok()) << planned.status().message();
  EXPECT_EQ(planned->config.train().batch(), 3);
  EXPECT_EQ(planned->config.dist().local().period(), 4);
  EXPECT_EQ(planned->config.dist().planned().rank_size(), 2);
  // As a checkpoint's config is read.
  const auto again = ParseRunConfig(PrintTextConfig(planned->config), "checkpoint", {});
  EXPECT_TRUE(again.ok()) << again.status().message();
}

TEST(TrainingRanksTest, AllOfAWorldThatWasNotPlannedFor) {
  Planned plan;
  plan.add_rank(0);
  plan.add_rank(2);
  plan.set_world(3);
  EXPECT_THAT(TrainingRanks(plan, 3).ranks(), ElementsAre(0, 2));
  EXPECT_THAT(TrainingRanks(plan, 2).ranks(), ElementsAre(0, 1));
}

// Each rank on a host of its own, between which a byte takes `seconds_per_byte`.
std::vector<StatusOr<Planned>> PlanTogether(int ranks, double seconds_per_byte) {
  const auto transports = MakeInProcessWorld(ranks);
  const LoadedConfig loaded = TinyConfig({"dist.plan=AUTO", "train.batch=4"});
  std::vector<StatusOr<Planned>> plans(ranks, Planned());
  std::vector<std::thread> threads;
  threads.reserve(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const LinkModel link{.latency_s = 1e-5, .seconds_per_byte = seconds_per_byte};
      const auto world =
          TrainingWorld::Create({.transport = transports[rank].get(),
                                 .topology = Topology::Blocks(ranks, 1),
                                 .network = {.within_host = link, .between_hosts = link}},
                                loaded.config.dist());
      plans[rank] = MakePlan(loaded, world->get());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return plans;
}

TEST(MakePlanTest, OneHostWhereTheWireIsFarTooSlow) {
  for (const auto& plan : PlanTogether(3, /*seconds_per_byte=*/1)) {
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_THAT(plan->rank(), ElementsAre(0));
    EXPECT_EQ(plan->world(), 3);
    EXPECT_THAT(plan->why(), HasSubstr("of 3 hosts: one host"));
    EXPECT_THAT(plan->why(), HasSubstr("idle, since they would slow it down: rank 1, rank 2"));
  }
}

TEST(MakePlanTest, TheSameOnAllRanks) {
  const auto plans = PlanTogether(2, /*seconds_per_byte=*/0);
  for (const auto& plan : plans) {
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_EQ(plan->SerializeAsString(), plans[0]->SerializeAsString());
    EXPECT_THAT(plan->set(), Not(IsEmpty()));
    EXPECT_THAT(plan->set(), Each(HasSubstr("=")));
  }
}

}  // namespace
}  // namespace ringtail
