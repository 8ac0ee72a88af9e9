// Whole rounds worked by hand (rounds_by_hand.h). Checkpoints between rounds, continued by as many ranks
// and by one.
#include "apps/trainer/local/local_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <cmath>
#include <filesystem>

#include "core/stop_signal.h"
#include "tests/apps/trainer/local/rounds_by_hand.h"

namespace ringtail {
namespace {

// SlowMo: v = m v + D / lr, w = w - r lr v, where lr made D. With g = 1 in every step D = lr, so that
// v = 1, 1 + m, 1 + m + m^2, ...; a round that travels has the rate of its own step, not of the next.
TEST_F(LocalUpdateTest, AnOverlappedRoundIsDividedByItsOwnRate) {
  constexpr double kMomentum = 0.5, kOuter = 0.25;
  const LoadedConfig loaded =
      ConfigOf({"dist.local.period=1", "dist.local.outer_form=SLOW_MOMENTUM",
                "dist.local.outer_learning_rate=0.25", "dist.local.outer_momentum=0.5"});
  OnRanks(2, loaded, /*resumes=*/false, [&](TrainingWorld* /*world*/, Rank* rank) {
    double merged = 0, v = 0;
    std::vector<double> rates;
    for (int step = 0; step < 12; ++step) {
      const Seen seen = rank->Step(1);
      rates.push_back(seen.rate);
      if (step > 0) {  // what the step before has done
        v = kMomentum * v + 1;
        merged -= kOuter * rates[step - 1] * v;
        EXPECT_EQ(seen.rounds.at(0).learning_rate, rates[step - 1]);
      }
      EXPECT_NEAR(seen.moved, merged, 1e-5) << step;
    }
    EXPECT_LT(rates.back(), 0.9 * rates.front());
  });
}

// The round that travels when a run is resumed has its own first step: what is said of it, and its rate,
// are as if the run had not been stopped.
TEST_F(LocalUpdateTest, AResumedRoundHasItsOwnSteps) {
  const LoadedConfig loaded =
      ConfigOf({"dist.local.period=3", "dist.local.outer_form=SLOW_MOMENTUM",
                "dist.local.outer_momentum=0.5"});
  constexpr int kRanks = 2;
  std::array<std::vector<Seen>, kRanks> whole, resumed;
  OnRanks(kRanks, loaded, /*resumes=*/false, [&](TrainingWorld* world, Rank* rank) {
    for (int step = 0; step < 9; ++step) {
      whole[world->rank()].push_back(rank->Step(1 + world->rank()));
      if (step == 5) rank->Save();
    }
  });
  OnRanks(kRanks, loaded, /*resumes=*/true, [&](TrainingWorld* world, Rank* rank) {
    for (int step = 6; step < 9; ++step) {
      resumed[world->rank()].push_back(rank->Step(1 + world->rank()));
    }
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    const Metrics expected = whole[rank].back().rounds.at(0);
    const Metrics actual = resumed[rank].back().rounds.at(0);
    EXPECT_EQ(expected.local_steps, 3);
    EXPECT_EQ(actual.local_steps, expected.local_steps);
    EXPECT_EQ(actual.learning_rate, expected.learning_rate);
    EXPECT_EQ(actual.batch, expected.batch);
    EXPECT_EQ(actual.cosine, expected.cosine);
    EXPECT_TRUE(std::isnan(actual.images_per_s)) << "its steps were before";
    EXPECT_TRUE(std::isnan(actual.step_ms));
    EXPECT_GT(expected.step_ms, 0);
    EXPECT_LT(actual.learning_rate, whole[rank][0].rate);
    EXPECT_EQ(resumed[rank].back().moved, whole[rank].back().moved);
  }
}

// The squares of Adam overflow at a mean gradient of 1e21, though every weight stays finite: such a
// state cannot be restored, and must not push out those that can. With rounds it is one rank's own.
TEST_F(LocalUpdateTest, AnOptimizerThatOverflowsLeavesTheCheckpointBefore) {
  constexpr int kRanks = 2, kAll = kRanks;
  for (const int bad : {kAll, 0, 1}) {
    Texts set = {"optim.adam={}"};
    if (bad != kAll) set.emplace_back("dist.local.period=1");
    const LoadedConfig loaded = ConfigOf(set);
    std::filesystem::remove_all(folder_.File("run"));
    OnRanks(kRanks, loaded, /*resumes=*/false, [&](TrainingWorld* world, Rank* rank) {
      rank->Step(1);
      rank->Save();
      for (int step = 1; step < 4; ++step) {
        const bool overflows = bad == kAll || bad == world->rank();
        EXPECT_EQ(rank->Step(overflows ? 1e21 : 1).left_out, 0);
        EXPECT_TRUE(std::isfinite(rank->Moved()));
        rank->Save();
      }
    });
    EXPECT_EQ(LoadNewestCheckpoint(folder_.File("run"))->step, 1) << bad;
    OnRanks(kRanks, loaded, /*resumes=*/true, [&](TrainingWorld* /*world*/, Rank* rank) {
      EXPECT_TRUE(std::isfinite(rank->Step(1).moved));
    });
  }
}

// The default is to stop for it, so that the world has to hear of it: from as many ranks and from one.
TEST_F(LocalUpdateTest, AStepThatWasLeftOutBeforeAResumeIsHeardOf) {
  for (const char* momentum : {"0.5", "0"}) {  // without one, one rank has no rounds
    const LoadedConfig loaded =
        ConfigOf({"dist.local.period=2", std::string("dist.local.outer_momentum=") + momentum});
    std::filesystem::remove_all(folder_.File("run"));
    OnRanks(3, loaded, /*resumes=*/false, [&](TrainingWorld* world, Rank* rank) {
      for (int step = 0; step < 4; ++step) {
        const bool fails = step == 3 && world->rank() == 2;
        EXPECT_EQ(rank->Step(fails ? std::nan("") : 1).left_out, 0) << "not exchanged yet";
      }
      rank->Save();
    });
    for (const int ranks : {3, 1}) {
      OnRanks(ranks, loaded, /*resumes=*/true, [&](TrainingWorld* /*world*/, Rank* rank) {
        Seen heard;
        for (int step = 4; step < 6 && heard.left_out == 0; ++step) heard = rank->Step(1);
        EXPECT_EQ(heard.left_out, 1) << ranks << " " << momentum;
        EXPECT_EQ(heard.not_finite, "a loss or gradient was not finite before the run was resumed");
        ASSERT_EQ(heard.rounds.size(), 1U);
        EXPECT_EQ(heard.rounds[0].local_steps, 2);
      });
    }
  }
}

// One rank has nothing to exchange: what is said of the last round of several comes with its first step
// that counts, and once.
TEST_F(LocalUpdateTest, OneRankTellsOfTheLastRoundOnce) {
  const LoadedConfig loaded = ConfigOf({"dist.local.period=2"});
  OnRanks(2, loaded, /*resumes=*/false, [&](TrainingWorld* /*world*/, Rank* rank) {
    for (int step = 0; step < 4; ++step) rank->Step(1);
    rank->Save();
  });
  OnRanks(1, loaded, /*resumes=*/true, [&](TrainingWorld* /*world*/, Rank* rank) {
    EXPECT_TRUE(rank->Step(std::nan("")).rounds.empty());
    rank->LeaveOut();
    EXPECT_EQ(rank->Step(1).rounds.size(), 1U);
    EXPECT_TRUE(rank->Step(1).rounds.empty());
    rank->Save();
  });
}

// Ranks that drift apart have halved rounds for the rest of the run, though one rank trains a part.
TEST_F(LocalUpdateTest, TheLimitOfRoundsOutlivesOneRank) {
  const LoadedConfig loaded =
      ConfigOf({"dist.local.period=2", "dist.local.overlap=false", "dist.local.min_cosine=0.5"});
  OnRanks(2, loaded, /*resumes=*/false, [&](TrainingWorld* world, Rank* rank) {
    for (int64_t step = 0; step < 2 * LocalPeriod::kWatched; ++step) {
      rank->Step(world->leads() ? 1 : -1);
    }
    rank->Save();
  });
  OnRanks(1, loaded, /*resumes=*/true, [&](TrainingWorld* /*world*/, Rank* rank) {
    EXPECT_TRUE(rank->Step(1).rounds.empty());
    rank->Save();
  });
  OnRanks(2, loaded, /*resumes=*/true, [&](TrainingWorld* /*world*/, Rank* rank) {
    const Seen seen = rank->Step(1);
    ASSERT_EQ(seen.rounds.size(), 1U);
    EXPECT_EQ(seen.rounds[0].local_steps, 1);
    rank->Save();
  });
  const auto point = ReadResumePoint(LoadNewestCheckpoint(folder_.File("run")).value()).value();
  EXPECT_EQ(point.local.rounds, LocalPeriod::kWatched + 1);
}

// It travels with the exchange of the round in which it came, which is heard at the end of the next.
TEST_F(LocalUpdateTest, AStopSignalIsHeardWithTheNextExchange) {
  const LoadedConfig loaded = ConfigOf({"dist.local.period=2"});
  OnRanks(2, loaded, /*resumes=*/false, [&](TrainingWorld* world, Rank* rank) {
    rank->Step(1);
    if (world->leads()) SetStopSignalForTest(SIGTERM);
    rank->Step(1);
    EXPECT_EQ(rank->stop_signal(), 0);
    rank->Step(1);
    rank->Step(1);
    EXPECT_EQ(rank->stop_signal(), SIGTERM);
  });
  SetStopSignalForTest(0);
}

// What an error leaves behind is the end of the round before it, with the optimizer of then.
TEST_F(LocalUpdateTest, OneRankFailsInTheMiddleOfARound) {
  const LoadedConfig loaded =
      ConfigOf({"dist.local.period=4", "dist.local.outer_momentum=0.5", "optim.sgd.momentum=0.9"});
  double expected = 0;
  const auto gradient = [](int step) { return 1 + 0.25 * step; };
  OnRanks(1, loaded, /*resumes=*/false, [&](TrainingWorld* /*world*/, Rank* rank) {
    for (int step = 0; step < 12; ++step) expected = rank->Step(gradient(step)).moved;
  });
  OnRanks(1, loaded, /*resumes=*/false, [&](TrainingWorld* /*world*/, Rank* rank) {
    for (int step = 0; step < 6; ++step) rank->Step(gradient(step));
    rank->Fail();
  });
  OnRanks(1, loaded, /*resumes=*/true, [&](TrainingWorld* /*world*/, Rank* rank) {
    double moved = 0;
    for (int step = 4; step < 12; ++step) moved = rank->Step(gradient(step)).moved;
    EXPECT_EQ(moved, expected);
  });
}

// The last step of those that all ranks take together meets a NaN (on_nan: SKIP).
TEST_F(LocalUpdateTest, RoundsBeginAfterADenseStepThatDoesNotCount) {
  const LoadedConfig loaded =
      ConfigOf({"dist.local.period=1", "dist.local.overlap=false", "dist.local.start_epoch=1"});
  OnRanks(2, loaded, /*resumes=*/false, [&](TrainingWorld* /*world*/, Rank* rank) {
    for (int64_t step = 1; step < rank->steps_per_epoch(); ++step) {
      EXPECT_TRUE(rank->Step(1).rounds.empty());
    }
    rank->Step(std::nan(""));
    rank->LeaveOut();
    rank->Save();
    EXPECT_EQ(rank->Step(1).rounds.size(), 1U);
  });
  OnRanks(2, loaded, /*resumes=*/true, [&](TrainingWorld* /*world*/, Rank* rank) {
    EXPECT_EQ(rank->Step(1).rounds.size(), 1U);
  });
}

constexpr int kThree = 3;
constexpr double kMean = 2;  // of the gradients of three ranks
double GradientOf(int rank) { return 1 + rank; }

// Outer momentum has rounds on one rank, too. v = m v + D, w = w - r (D + m v), once for each round: also
// for the one that travelled when three ranks stopped, and for all that one rank has done since.
TEST_F(LocalUpdateTest, OneRankContinuesTheRoundThatTravelled) {
  constexpr double kMomentum = 0.5, kOuter = 0.7;
  const LoadedConfig loaded = ConfigOf({"dist.local.period=2", "dist.local.outer_learning_rate=0.7",
                                        "dist.local.outer_momentum=0.5"});
  double w = 0, v = 0, difference = 0;
  const auto end_round = [&] {
    v = kMomentum * v + difference;
    w -= kOuter * (difference + kMomentum * v);
    difference = 0;
  };
  OnRanks(kThree, loaded, /*resumes=*/false, [&](TrainingWorld* world, Rank* rank) {
    for (int step = 0; step < 6; ++step) {
      const Seen seen = rank->Step(GradientOf(world->rank()));
      if (!world->leads()) continue;
      difference += seen.rate * kMean;
      if (step % 2 == 1) end_round();
    }
    rank->Save();
  });
  OnRanks(1, loaded, /*resumes=*/true, [&](TrainingWorld* /*world*/, Rank* rank) {
    EXPECT_LT(rank->FarthestFrom(w), 1e-5) << "merged before the first step";
    for (int step = 6; step < 12; ++step) {
      const Seen seen = rank->Step(kMean);
      difference += seen.rate * kMean;
      ASSERT_EQ(seen.rounds.size(), step == 6 || step % 2 == 1 ? 1U : 0U);
      if (step == 6) {
        EXPECT_EQ(seen.rounds[0].local_steps, 2) << "of the three ranks";
      }
      if (step % 2 == 0) continue;
      end_round();
      EXPECT_LT(rank->FarthestFrom(w), 1e-5) << step;
    }
  });
}

// What top_k had not sent of the ranks' rounds is not lost on the one that is left, and counts once: by
// the mean of the ranks at once, and with an outer rate in the next exchange.
TEST_F(LocalUpdateTest, OneRankAddsWhatCodecsHadNotSent) {
  for (const double outer : {1.0, 0.5}) {
    for (const char* overlap : {"true", "false"}) {
      const LoadedConfig loaded = ConfigOf(
          {"dist.local.period=2", "dist.local.outer_learning_rate=" + std::to_string(outer),
           std::string("dist.local.overlap=") + overlap,
           "dist.local.compression.scheme.top_k.density=0.2",
           "dist.local.compression.min_elements=0", "dist.local.compression.fall_back=false",
           "dist.local.compression.route=GATHER"});
      double w = 0;
      OnRanks(kThree, loaded, /*resumes=*/false, [&](TrainingWorld* world, Rank* rank) {
        for (int step = 0; step < 6; ++step) {
          const Seen seen = rank->Step(GradientOf(world->rank()));
          for (const Metrics& round : seen.rounds) EXPECT_TRUE(std::isnan(round.cosine));
          if (world->leads()) w -= outer * seen.rate * kMean;
        }
        if (world->leads()) {
          EXPECT_GT(rank->FarthestFrom(w), 0.1) << "something must have been left out";
        }
        rank->Save();
      });
      OnRanks(1, loaded, /*resumes=*/true, [&](TrainingWorld* /*world*/, Rank* rank) {
        for (int step = 6; step < 10; ++step) w -= outer * rank->Step(kMean).rate * kMean;
        EXPECT_LT(rank->FarthestFrom(w), 1e-4) << outer << " " << overlap;
      });
    }
  }
}

}  // namespace
}  // namespace ringtail
