// Rounds that travel while the next is computed, by ranks that are threads of this process: for the
// race detector, and for the sums.
#include "apps/trainer/local/round_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/apps/trainer/thread_world.h"

namespace ringtail {
namespace {

constexpr int kRanks = 3;

std::unique_ptr<ParameterArena> Model() {
  return *ParameterArena::Create(
      {{.name = "a", .shape = {50, 30}, .kind = ParameterKind::kLinearWeight},
       {.name = "b", .shape = {7}}},
      {{.name = "mean", .shape = {5}}});
}

void Add(float step, ParameterArena* model) {
  for (float& value : model->parameters()[0].value()) value += step;
  for (float& value : model->buffer_values()) value += step;
}

// Every rank moves by its own number in each of its steps, two a round.
TEST(RoundExchange, OverlapsWithTheNextRound) {
  constexpr int kRounds = 20;
  OnTrainingRanks(kRanks, [](TrainingWorld* world) {
    const auto model = Model();
    const auto round = *LocalRound::Create(model.get(), {}, /*overlapped=*/true);
    RoundExchange exchange(world, round.get(), DistConfig());
    const auto step = static_cast<float>(world->rank() + 1);
    for (int i = 0; i < kRounds; ++i) {
      for (int own_step = 0; own_step < 2; ++own_step) Add(step, model.get());
      if (exchange.under_way()) {
        const auto ranks = exchange.Finish();
        ASSERT_TRUE(ranks.ok()) << ranks.status().message();
        for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ((*ranks)[rank].images, 10 * i + rank);
        round->Merge(i, kRanks, 1);
        // The mean step is 2; what this rank has done since is its own.
        EXPECT_EQ(round->common_weights()[0], 4.0F * static_cast<float>(i));
        EXPECT_EQ(model->values()[0], 4.0F * static_cast<float>(i) + 2 * step);
      }
      round->Take(1);
      exchange.Start({.weight = 1, .images = 10.0 * (i + 1) + world->rank()});
    }
    ASSERT_TRUE(exchange.Finish().ok());
  });
}

// An error of this rank's own in the middle of a round ends it before the exchange: its memory is in use
// until the others have come, or the world is over.
TEST(RoundExchange, IsWaitedForAtItsEnd) {
  for (const bool aborts : {false, true}) {
    OnTrainingRanks(2, [aborts](TrainingWorld* world) {
      const auto model = Model();
      const auto round = *LocalRound::Create(model.get(), {}, /*overlapped=*/true);
      if (!world->leads()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (!world->leads() && aborts) return world->Abort(Internal("a test"));
      {
        RoundExchange exchange(world, round.get(), DistConfig());
        round->Take(1);
        exchange.Start({.weight = 1});
      }
      EXPECT_TRUE(world->gradient_thread()->idle());
      EXPECT_FALSE(world->lost());
    });
  }
}

TEST(RoundExchange, CompressedDifferencesKeepWhatTheyLeaveOut) {
  CompressionConfig config;
  config.mutable_scheme()->mutable_top_k()->set_density(0.1);
  config.set_min_elements(0);
  config.set_fall_back(false);
  OnTrainingRanks(kRanks, [&](TrainingWorld* world) {
    const auto model = Model();
    const auto round = *LocalRound::Create(model.get(), {}, /*overlapped=*/false);
    RoundExchange exchange(world, round.get(), DistConfig());
    const auto compression = GradientCompression::Create(world, round->differences(), config,
                                                         {.buckets = exchange.buckets()}, {});
    ASSERT_TRUE(compression.ok()) << compression.status().message();
    exchange.Compress(compression->get());
    for (int i = 0; i < 30; ++i) {
      if (i == 0) Add(1, model.get());  // and no step later
      (*compression)->BeginStep(i, 0, 1);
      round->Take(1);
      exchange.Start({.weight = 1});
      ASSERT_TRUE(exchange.Finish().ok());
      round->Merge(i, kRanks, 1);
      (*compression)->EndStep(i);
    }
    // What was left out has travelled later.
    for (const float value : model->parameters()[0].value()) EXPECT_NEAR(value, 1, 1e-5);
  });
}

}  // namespace
}  // namespace ringtail
