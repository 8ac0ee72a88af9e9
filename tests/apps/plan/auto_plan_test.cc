// dist.plan: AUTO: a plan that is made by ranks together, and followed.
#include "apps/plan/auto_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "apps/plan/measure_update.h"
#include "core/config/text_config.h"
#include "dist/transport/in_process.h"
#include "tests/apps/tiny_run.h"

namespace ringtail {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(WithPlanTest, TheConfigOfTheRunHoldsSettingsAndPlan) {
  Planned plan;
  plan.add_rank(0);
  plan.add_rank(2);
  plan.set_world(3);
  for (const char* set : {"train.batch=3", "dist.local.period=4"}) plan.add_set(set);
  const LoadedConfig loaded = TinyConfig({"dist.plan=AUTO"});
  const auto planned = WithPlan(loaded, plan, /*world_size=*/3);
  ASSERT_TRUE(planned.ok()) << planned.status().message();
  EXPECT_EQ(planned->config.train().batch(), 3);
  EXPECT_EQ(planned->config.dist().local().period(), 4);
  EXPECT_EQ(planned->config.dist().planned().rank_size(), 2);
  // As a checkpoint's config is read.
  const auto again = ParseRunConfig(PrintTextConfig(planned->config), "checkpoint", {});
  EXPECT_TRUE(again.ok()) << again.status().message();
}

Planned PlanOfTwo(const std::vector<std::string>& settings) {
  Planned plan;
  for (const int rank : {0, 1}) plan.add_rank(rank);
  plan.set_world(2);
  plan.set_why("2 hosts, dense");
  for (const std::string& setting : settings) plan.add_set(setting);
  return plan;
}

TEST(WithPlanTest, WhatIsSetWhenARunContinuesStays) {
  const Planned plan = PlanOfTwo({"train.batch=8", "train.accumulation=1"});
  const auto begun = WithPlan(TinyConfig({"dist.plan=AUTO"}), plan, 2);
  ASSERT_TRUE(begun.ok()) << begun.status().message();
  const auto resumed = ParseRunConfig(PrintTextConfig(begun->config), "checkpoint",
                                      std::vector<std::string>{"train.accumulation=2"});
  ASSERT_TRUE(resumed.ok()) << resumed.status().message();
  const auto continued = WithPlan(*resumed, plan, 2);
  ASSERT_TRUE(continued.ok()) << continued.status().message();
  EXPECT_EQ(continued->config.train().batch(), 8);
  EXPECT_EQ(continued->config.train().accumulation(), 2);
}

// Seven ranks cannot have equal shares of a batch that eight divided.
TEST(WithPlanTest, LayersAreWholeInAnotherWorld) {
  const Planned plan = PlanOfTwo({"dist.model_parallel.linear=AUTO"});
  const LoadedConfig loaded = TinyConfig({"dist.plan=AUTO"});
  const auto linear = [&](int world_size) {
    return WithPlan(loaded, plan, world_size)->config.dist().model_parallel().linear();
  };
  EXPECT_EQ(linear(2), ModelParallelConfig::AUTO);
  EXPECT_EQ(linear(3), ModelParallelConfig::WHOLE);
  EXPECT_EQ(Words(plan, 2), "2 hosts, dense");
  EXPECT_EQ(Words(plan, 3), "made for 2 ranks, all of now 3 train: 2 hosts, dense");
}

TEST(TrainingRanksTest, AllOfAWorldThatWasNotPlannedFor) {
  Planned plan;
  plan.add_rank(0);
  plan.add_rank(2);
  plan.set_world(3);
  EXPECT_THAT(TrainingRanks(plan, 3).ranks(), ElementsAre(0, 2));
  EXPECT_THAT(TrainingRanks(plan, 2).ranks(), ElementsAre(0, 1));
}

// In proportion to the rule's work, and with what is left not less than a step without it.
TEST(MeasurePreparationTest, IsDividedByTheWorkOfTheLayers) {
  const auto arena =
      ParameterArena::Create(
          {{.name = "a.weight", .shape = {8, 4}, .kind = ParameterKind::kLinearWeight},
           {.name = "a.bias", .shape = {8}},
           {.name = "b.weight", .shape = {8, 8}, .kind = ParameterKind::kLinearWeight}},
          {})
          .value();
  std::ranges::fill(arena->values(), 1.0F);
  std::ranges::fill(arena->grads(), 1.0F);
  const auto measure = [&](const std::string& text, double optimizer_s) {
    OptimConfig config;
    EXPECT_TRUE(ParseTextConfig(text, "optim", &config, nullptr).ok());
    const auto optimizer = Optimizer::Create(config, arena.get()).value();
    return MeasurePreparation(config, {.optimizer_s = optimizer_s}, optimizer.get());
  };
  constexpr double kLong = 1e3;  // seconds, beside which a step of this size takes none
  const Preparation whole = measure("muon {}", kLong);
  ASSERT_EQ(whole.seconds.size(), 3U);
  EXPECT_GT(whole.seconds[0], 0);
  EXPECT_EQ(whole.seconds[1], 0);
  EXPECT_DOUBLE_EQ(whole.seconds[2], 4 * whole.seconds[0]);  // 8 x 8 x 8 and 8 x 4 x 4 operations
  EXPECT_EQ(whole.longer_s, 0);
  const Preparation detour = measure("muon {}", 0);  // beside a step that takes no time, all of it
  EXPECT_GE(detour.longer_s, detour.seconds[0] + detour.seconds[2]);
  EXPECT_THAT(measure("muon {} clip_norm: 1", kLong).seconds, IsEmpty());
  EXPECT_THAT(measure("sgd {}", kLong).seconds, IsEmpty());
}

// Each rank on a host of its own, between which a byte takes `seconds_per_byte`.
std::vector<StatusOr<Planned>> PlanTogether(int ranks, double seconds_per_byte,
                                            bool equal_shares = true) {
  const auto transports = MakeInProcessWorld(ranks);
  // Of two ranks each has more than the fewest images for batch norm.
  const LoadedConfig loaded =
      TinyConfig({"dist.plan=AUTO", "train.batch=32", "train.phase[0].from_epoch=0.5",
                  "train.phase[0].image_size=32"});
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
      plans[rank] = MakePlan(loaded, /*data=*/nullptr, equal_shares, world->get());
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
    EXPECT_THAT(plan->why(), HasSubstr("of 3 hosts: one host, 32 images in a step; dense on all"));
    EXPECT_THAT(plan->why(), HasSubstr("idle, since they would slow it down: rank 1, rank 2"));
  }
}

// As the user asks for it (--local-batch auto), and as a run that continues has to know.
TEST(MakePlanTest, KeepsThatImagesAreDividedBySpeed) {
  for (const bool equal_shares : {false, true}) {
    const auto plan = PlanTogether(2, /*seconds_per_byte=*/0, equal_shares).front();
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const bool said = plan->why().find("images divided by speed") != std::string::npos;
    EXPECT_EQ(plan->by_speed(), said) << plan->why();
    EXPECT_TRUE(equal_shares || plan->by_speed() == (plan->rank_size() > 1)) << plan->why();
  }
}

TEST(PlansSharesBySpeedTest, OnlyWhileThePlanIsFollowed) {
  DistConfig config;
  config.set_plan(DistConfig::AUTO);
  EXPECT_FALSE(PlansSharesBySpeed(config));
  config.mutable_planned()->set_by_speed(true);
  EXPECT_TRUE(PlansSharesBySpeed(config));
  config.set_plan(DistConfig::CONFIG);
  EXPECT_FALSE(PlansSharesBySpeed(config));
}

TEST(InWordsTest, NamesSharesBySpeedAndWhatEvenOnesWouldGive) {
  const auto at = [](Choice choice, double images) {
    return Prediction{
        .choice = std::move(choice), .seconds = {.forward = 1}, .images = images, .ranks = 4};
  };
  const Choice four{.hosts = 4, .global_batch = 400, .by_speed = true};
  HostChoice choice{.hosts = {0, 1, 2, 3}, .best = at(four, 340), .one_host = at({}, 100)};
  EXPECT_EQ(InWords(choice, 4),
            "4 hosts, dense, every step, images divided by speed, 400 images in a step: predicted "
            "3.4 times one host");
  choice.even = at({.hosts = 3, .global_batch = 400}, 290);
  EXPECT_THAT(InWords(choice, 4), HasSubstr("3.4 times one host, with even shares 2.9"));
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
