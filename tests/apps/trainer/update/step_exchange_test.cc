// An exchange that ends in the middle of a step: its memory is in use until the others have come,
// or the world is over.
#include "apps/trainer/update/step_exchange.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "tests/apps/trainer/thread_world.h"

namespace ringtail {
namespace {

constexpr int kRanks = 2;

std::unique_ptr<ParameterArena> Model() {
  return *ParameterArena::Create(
      {{.name = "a", .shape = {50, 30}, .kind = ParameterKind::kLinearWeight},
       {.name = "b", .shape = {7}}},
      {{.name = "mean", .shape = {5}}});
}

// As of a step whose backward fails after its first gradient.
void BeginAndLeave(TrainingWorld* world, TrainingWorld* replicas) {
  const auto model = Model();
  StepExchange exchange(world, replicas, &*model, {.batch = 1, .global_batch = kRanks},
                        DistConfig());
  exchange.BeginStep(0, /*measures_noise=*/true);
  exchange.OnLoss({.loss_sum = 1, .correct = 1, .count = 1});
  exchange.OnReady(model->parameters()[0]);
}

TEST(StepExchange, IsWaitedForAtItsEnd) {
  for (const bool aborts : {false, true}) {
    OnTrainingRanks(kRanks, [aborts](TrainingWorld* world) {
      if (!world->leads()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (!world->leads() && aborts) return world->Abort(Internal("a test"));
      BeginAndLeave(world, world);
      EXPECT_TRUE(world->gradient_thread()->idle());
      EXPECT_FALSE(world->lost());
    });
  }
}

// Of a pipeline, whose stages add up gradients in worlds of their own.
TEST(StepExchange, IsWaitedForOnTheThreadOfTheReplicas) {
  OnTrainingRanks(kRanks, [](TrainingWorld* world) {
    const auto replicas = world->OfGroup(RankGroup::World(kRanks), DistConfig());
    ASSERT_TRUE(replicas.ok()) << replicas.status().message();
    if (!world->leads()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    BeginAndLeave(world, replicas->get());
    EXPECT_TRUE((*replicas)->gradient_thread()->idle());
    EXPECT_TRUE(world->gradient_thread()->idle());
  });
}

}  // namespace
}  // namespace ringtail
