// Whole rounds of ranks that are threads of this process, with gradients worked by hand: every element
// of every gradient of a step is the same number, so that every weight moves by the same. Checkpoints
// between rounds, continued by as many ranks and by one.
#include "apps/trainer/local/local_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>

#include "apps/trainer/run_keeper.h"
#include "core/parallel_for.h"
#include "tests/apps/tiny_run.h"
#include "tests/apps/trainer/thread_world.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using Texts = std::vector<std::string>;

// The rate falls from step to step, and steps are by the gradient alone.
LoadedConfig ConfigOf(const Texts& more) {
  Texts all = {"train.batch=2",           "optim.clip_norm=0",
               "optim.sgd.momentum=0",    "optim.sgd.nesterov=false",
               "optim.weight_decay=0",    "optim.ema_decay=0",
               "optim.learning_rate=0.5", "optim.cosine={}",
               "dist.algorithm=\"ring\""};
  all.insert(all.end(), more.begin(), more.end());
  return TinyConfig(all);
}

// What a step of the world has left behind on this rank.
struct Seen {
  double rate = 0;
  std::vector<Metrics> rounds;
  double moved = 0;  // by the first common weight, since the run began
  int64_t left_out = 0;
  std::string not_finite;
};

class Rank {
 public:
  // `directory`: null but on rank 0. `point`: empty for a run that begins.
  Rank(const LoadedConfig& loaded, const TrainingData& data, TrainingWorld* world,
       RunDirectory* directory, const ResumePoint& point)
      : run_(TrainingRun::Create({.loaded = &loaded,
                                  .data = &data,
                                  .directory = directory,
                                  .rank = world->rank(),
                                  .ranks = world->size(),
                                  .resumes = !point.empty()})
                 .value()),
        generation_(Generation::Create(&run_, point, world).value()),
        keeper_(&generation_),
        start_(generation_.arena().values().begin(), generation_.arena().values().end()) {
    if (point.tensors) {
      EXPECT_TRUE(run_.state.Restore(*point.tensors).ok());
      run_.state.progress = point.progress;
    }
    EXPECT_TRUE(keeper_.Begin(point).ok());
    EXPECT_TRUE(world->ShareState(&run_.state, 0).ok());
    update_ = UpdatePath::Create(&generation_, point).value();
    keeper_.Keep(update_.get());
  }

  // With `gradient` in every element of the mean over this rank's images.
  Seen Step(double gradient) {
    const int64_t images = generation_.division.own.batch;
    const LossResult loss = {
        .loss_sum = 0.5 * static_cast<double>(images), .correct = 1, .count = images};
    EXPECT_TRUE(update_->BeginStep().ok());
    update_->listener()->OnLoss(loss);
    for (const Parameter& p : generation_.arena().parameters()) {
      std::ranges::fill(p.grad(), static_cast<float>(gradient * static_cast<double>(images)));
      update_->listener()->OnReady(p);
    }
    const auto result = update_->FinishStep(
        {.loss = loss, .find_not_finite = [] { return std::string("a gradient of a test"); }});
    EXPECT_TRUE(result.ok()) << result.status().message();
    if (!result.ok()) return {};
    return {result->metrics.learning_rate, result->rounds, Moved(), result->left_out,
            result->not_finite};
  }

  // As the trainer does with a step that does not count.
  void LeaveOut() { ++run_.state.progress.step; }
  // Ends the run in the middle of a step.
  void Fail() {
    EXPECT_TRUE(update_->BeginStep().ok());
    keeper_.SaveAfterFailure(Internal("a test"));
  }
  void Save() { EXPECT_TRUE(keeper_.SaveCheckpoint(/*best=*/false).ok()); }
  // The largest difference between what a weight has moved by and `moved`.
  double FarthestFrom(double moved) const {
    double farthest = 0;
    for (const Parameter& p : generation_.arena().parameters()) {
      for (int64_t i = p.offset; i < p.offset + p.elements; ++i) {  // what is between them stays 0
        farthest =
            std::max(farthest, std::abs(generation_.arena().values()[i] - start_[i] - moved));
      }
    }
    return farthest;
  }
  int64_t steps_per_epoch() const { return generation_.plan.batches_per_epoch(); }
  double Moved() const { return generation_.arena().values()[0] - start_[0]; }

 private:
  TrainingRun run_;
  Generation generation_;
  RunKeeper keeper_;
  std::unique_ptr<UpdatePath> update_;
  const std::vector<float> start_;  // weights, when the run began
};

class LocalUpdateTest : public testing::Test {
 protected:
  using Body = std::function<void(TrainingWorld*, Rank*)>;

  // On `size` ranks, from `point` or the beginning.
  void OnRanks(int size, const LoadedConfig& loaded, bool resumes, const Body& body) {
    TrainingWorld alone;
    const TrainingData data = TrainingData::Open(loaded.config.data(), &alone).value();
    const auto directory = RunDirectory::Open(folder_.File("run")).value();
    OnTrainingRanks(size, [&](TrainingWorld* world) {
      SetNumComputeThreads(1);
      ResumePoint point;
      if (resumes && world->leads()) {
        point = ReadResumePoint(LoadNewestCheckpoint(folder_.File("run")).value()).value();
      }
      Rank rank(loaded, data, world, world->leads() ? directory.get() : nullptr, point);
      body(world, &rank);
    });
  }

  const TempDir folder_;
};

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
  const LoadedConfig loaded = ConfigOf({"dist.local.period=2", "dist.local.outer_momentum=0.5"});
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
      EXPECT_EQ(heard.left_out, 1) << ranks;
      EXPECT_EQ(heard.not_finite, "a loss or gradient was not finite before the run was resumed");
    });
  }
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
