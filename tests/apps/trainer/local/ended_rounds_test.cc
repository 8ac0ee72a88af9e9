// Rounds worked by hand (rounds_by_hand.h) in which a rank is lost, or has nothing to add.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <filesystem>
#include <thread>

#include "apps/trainer/local/round_exchange.h"
#include "tests/apps/trainer/local/rounds_by_hand.h"

namespace ringtail {
namespace {

constexpr int kThree = 3;
const double kNan = std::nan("");

// Both of two ranks, of which rank 1 is lost; returns when both know.
void LoseRank1(TrainingWorld* world, std::barrier<>* both) {
  both->arrive_and_wait();
  if (world->rank() == 1) world->Abort(Status(StatusCode::kUnavailable, "a test"));
  while (world->transport()->EndCause().ok()) std::this_thread::yield();
}

// Not at the end of the round: it would not live that long.
TEST_F(LocalUpdateTest, ASurvivorHearsOfALossInItsNextStep) {
  for (const char* overlap : {"true", "false"}) {
    const LoadedConfig loaded =
        ConfigOf({"dist.local.period=9", std::string("dist.local.overlap=") + overlap});
    std::barrier<> both(2);
    OnRanks(2, loaded, /*resumes=*/false, [&](TrainingWorld* world, Rank* rank) {
      rank->Step(1);
      LoseRank1(world, &both);
      if (!world->leads()) return;
      EXPECT_FALSE(rank->Try(1).ok());
      EXPECT_TRUE(world->lost());
      rank->End();
      EXPECT_EQ(rank->step(), 0);
      EXPECT_EQ(rank->Moved(), 0);
    });
  }
}

// v = m v + D, w = w - r (D + m v) continues in the next run.
TEST_F(LocalUpdateTest, TheOuterMomentumOutlivesALostRank) {
  constexpr double kMomentum = 0.5, kOuter = 0.7;
  const LoadedConfig loaded =
      ConfigOf({"dist.local.period=2", "dist.local.overlap=false",
                "dist.local.outer_learning_rate=0.7", "dist.local.outer_momentum=0.5"});
  std::barrier<> both(2);
  double w = 0, v = 0;
  const auto end_round = [&](double difference) {
    v = kMomentum * v + difference;
    w -= kOuter * (difference + kMomentum * v);
  };
  OnRanks(2, loaded, /*resumes=*/false, [&](TrainingWorld* world, Rank* rank) {
    for (int round = 0; round < 2; ++round) {
      const double difference = rank->Step(1).rate + rank->Step(1).rate;
      if (world->leads()) end_round(difference);
    }
    LoseRank1(world, &both);
    if (!world->leads()) return;
    EXPECT_FALSE(rank->Try(1).ok());
    rank->End();
  });
  OnRanks(2, loaded, /*resumes=*/true, [&](TrainingWorld* world, Rank* rank) {
    EXPECT_EQ(rank->step(), 4);
    const double difference = rank->Step(1).rate + rank->Step(1).rate;
    if (!world->leads()) return;
    end_round(difference);
    EXPECT_LT(rank->FarthestFrom(w), 1e-5);
  });
}

// Rank 1 takes its part in the exchange, and is lost while the ranks tell each other of a step that it
// has left out: what is saved is the end of the round before, not this round's weights with its number,
// nor its length, which may be more than all steps before it. The image size changes after step 1.
TEST_F(LocalUpdateTest, ALossAfterTheExchangeUndoesTheWholeRound) {
  constexpr int kPeriod = 3;
  const LoadedConfig loaded = ConfigOf(
      {"dist.local.period=3", "dist.local.overlap=false", "train.phase[0].from_epoch=0.1"});
  double saved = 0;
  OnRanks(2, loaded, /*resumes=*/false, [&](TrainingWorld* world, Rank* rank) {
    const Seen first = rank->Step(1);
    EXPECT_EQ(first.rounds.size(), 1U);
    const double before = first.moved;
    if (world->leads()) {
      saved = before;
      for (int step = 1; step < kPeriod; ++step) rank->Step(1);
      EXPECT_FALSE(rank->Try(1).ok());
      rank->End();
      EXPECT_EQ(rank->step(), 1);
      EXPECT_EQ(rank->Moved(), before);
      return;
    }
    const auto round = LocalRound::Create(rank->arena(), {}, /*overlapped=*/false).value();
    RoundExchange exchange(world, round.get(), loaded.config.dist());
    round->TakeNothing();
    exchange.Start({.left_out = 1});
    EXPECT_TRUE(exchange.Finish().ok());
    std::vector<int64_t> bytes = {0, 3};  // of a text that does not come
    EXPECT_TRUE(
        world->Run([&](Communicator* ranks) { return ranks->AllGather(std::span(bytes)); }).ok());
    world->Abort(Status(StatusCode::kUnavailable, "a test"));
  });
  OnRanks(2, loaded, /*resumes=*/true, [&](TrainingWorld* /*world*/, Rank* rank) {
    EXPECT_EQ(rank->step(), 1);
    EXPECT_EQ(rank->Moved(), saved);
    for (int step = 0; step < kPeriod; ++step) rank->Step(1);
    EXPECT_LT(rank->Moved(), saved);
  });
}

// A rank is lost as the last step before the rounds ends: what the checkpoint says of the routes of
// gradients does not fit the differences, none of which is compressed here.
TEST_F(LocalUpdateTest, RoutesOfGradientsAreNotThoseOfDifferences) {
  const auto config = [](const std::string& start_epoch) {
    return ConfigOf({"dist.local.period=2", "dist.local.overlap=false",
                     "dist.local.start_epoch=" + start_epoch,
                     "dist.local.compression.scheme.top_k.density=0.2",
                     "dist.local.compression.min_elements=1000000",
                     "dist.compression.scheme.top_k.density=0.2", "dist.compression.min_elements=0",
                     "dist.compression.fall_back=false", "dist.compression.route=GATHER"});
  };
  int64_t first = 0;  // of the rounds
  // With later rounds, so that the update of the dense steps still stands at the end of the epoch.
  OnRanks(2, config("2"), /*resumes=*/false, [&](TrainingWorld* world, Rank* rank) {
    for (int64_t step = 0; step < rank->steps_per_epoch(); ++step) rank->Step(1);
    if (!world->leads()) return;
    first = rank->step();
    rank->End();
  });
  const auto point = ReadResumePoint(LoadNewestCheckpoint(folder_.File("run")).value());
  ASSERT_TRUE(point.ok()) << point.status().message();
  EXPECT_THAT(point->compression.letters, testing::HasSubstr("g"));
  OnRanks(2, config("1"), /*resumes=*/true, [&](TrainingWorld* /*world*/, Rank* rank) {
    EXPECT_EQ(rank->step(), first);
    EXPECT_TRUE(rank->Step(1).rounds.empty());
    EXPECT_EQ(rank->Step(1).rounds.size(), 1U);
  });
}

// What codecs keep counts as much in a round in which not all ranks have something to add, or none.
TEST_F(LocalUpdateTest, WhatCodecsKeepCountsOnceInEveryRound) {
  for (const int adding : {1, 0}) {
    const LoadedConfig loaded = ConfigOf(
        {"dist.local.period=2", "dist.local.overlap=false",
         "dist.local.compression.scheme.top_k.density=0.2", "dist.local.compression.min_elements=0",
         "dist.local.compression.fall_back=false", "dist.local.compression.route=GATHER"});
    std::filesystem::remove_all(folder_.File("run"));
    double w = 0;
    OnRanks(kThree, loaded, /*resumes=*/false, [&](TrainingWorld* world, Rank* rank) {
      for (int step = 0; step < 6; ++step) {
        const bool adds = step < 4 || world->rank() < adding;
        const Seen seen = rank->Step(adds ? 1 + world->rank() : kNan);
        const double sum = step < 4 ? 1 + 2 + 3 : adding;
        if (world->leads()) w -= seen.rate * sum / kThree;
      }
      rank->Save();
    });
    OnRanks(1, loaded, /*resumes=*/true, [&](TrainingWorld* /*world*/, Rank* rank) {
      EXPECT_LT(rank->FarthestFrom(w), 1e-4) << adding;
    });
  }
}

// The round that travels is of the ranks that have something to add, also for one that continues it.
TEST_F(LocalUpdateTest, ARoundThatTravelsIsWeighedAfterAResumeToo) {
  const LoadedConfig loaded = ConfigOf({"dist.local.period=2"});
  double w = 0;
  OnRanks(kThree, loaded, /*resumes=*/false, [&](TrainingWorld* world, Rank* rank) {
    for (int step = 0; step < 4; ++step) {
      const bool adds = step < 2 || world->rank() < 2;
      const Seen seen = rank->Step(adds ? 1 + world->rank() : kNan);
      if (world->leads()) w -= seen.rate * (step < 2 ? (1. + 2 + 3) / 3 : (1. + 2) / 2);
    }
    rank->Save();
  });
  OnRanks(1, loaded, /*resumes=*/true,
          [&](TrainingWorld* /*world*/, Rank* rank) { EXPECT_LT(rank->FarthestFrom(w), 1e-5); });
}

}  // namespace
}  // namespace ringtail
