// Ranks of local rounds that are threads of this process, with gradients worked by hand: every element
// of every gradient of a step is the same number, so that every weight moves by the same.
#ifndef RINGTAIL_TESTS_APPS_TRAINER_LOCAL_ROUNDS_BY_HAND_H_
#define RINGTAIL_TESTS_APPS_TRAINER_LOCAL_ROUNDS_BY_HAND_H_

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/trainer/run_keeper.h"
#include "core/parallel_for.h"
#include "tests/apps/tiny_run.h"
#include "tests/apps/trainer/thread_world.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {

using Texts = std::vector<std::string>;

// The rate falls from step to step, and steps are by the gradient alone.
inline LoadedConfig ConfigOf(const Texts& more) {
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
    const auto result = Try(gradient);
    EXPECT_TRUE(result.ok()) << result.status().message();
    if (!result.ok()) return {};
    return {result->metrics.learning_rate, result->rounds, Moved(), result->left_out,
            result->not_finite};
  }
  StatusOr<StepResult> Try(double gradient) {
    const int64_t images = generation_.division.own.batch;
    const LossResult loss = {
        .loss_sum = 0.5 * static_cast<double>(images), .correct = 1, .count = images};
    EXPECT_TRUE(update_->BeginStep().ok());
    update_->listener()->OnLoss(loss);
    for (const Parameter& p : generation_.arena().parameters()) {
      std::ranges::fill(p.grad(), static_cast<float>(gradient * static_cast<double>(images)));
      update_->listener()->OnReady(p);
    }
    return update_->FinishStep(
        {.loss = loss, .find_not_finite = [] { return std::string("a gradient of a test"); }});
  }

  // As the trainer does with a step that does not count.
  void LeaveOut() { ++run_.state.progress.step; }
  // Ends the run in the middle of a step.
  void Fail() {
    EXPECT_TRUE(update_->BeginStep().ok());
    End();
  }
  void End() { keeper_.SaveAfterFailure(Internal("a test")); }
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
  RunKeeper* keeper() { return &keeper_; }
  int stop_signal() const { return update_->stop_signal(); }
  ParameterArena* arena() { return &generation_.arena(); }
  int64_t step() const { return generation_.step(); }
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

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_APPS_TRAINER_LOCAL_ROUNDS_BY_HAND_H_
