// What is prepared of an update while the last gradients travel: the same bits, and nothing of it
// stays if the step is left out.
#include "apps/trainer/update/allreduce_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <thread>

#include "core/parallel_for.h"
#include "core/random.h"
#include "tests/apps/tiny_run.h"
#include "tests/apps/trainer/thread_world.h"

namespace ringtail {
namespace {

constexpr int kRanks = 2;
constexpr auto kDeadline = std::chrono::minutes(1);

enum class End { kWhole, kNan, kAbort };  // of a step, at its last gradient

// Two buckets and more, of which the first has a matrix.
std::vector<std::string> Config(double clip_norm) {
  return {"optim.muon={}", "optim.clip_norm=" + std::to_string(clip_norm), "train.batch=4",
          "dist.end_bucket_kib=1"};
}

// How far rank 0's progress counter moves from its last gradient on until it prepares, while rank 1
// holds its own back: that gradient; into the wait for the loss and out of it, the same for bucket 0,
// and into phase kUpdate. Without preparation it stays at the wait for all buckets, the fourth.
constexpr uint64_t kUntilPreparing = 6;

class Rank {
 public:
  Rank(const LoadedConfig& loaded, const TrainingData& data, TrainingWorld* world)
      : world_(world),
        run_(TrainingRun::Create({.loaded = &loaded, .data = &data}).value()),
        generation_(Generation::Create(&run_, {}, world).value()),
        update_(UpdatePath::Create(&generation_, {}).value()) {}

  // `wait`: called before the last gradient is released.
  StatusOr<StepResult> Step(int64_t step, End end, const std::function<void()>& wait) {
    RT_RETURN_IF_ERROR(update_->BeginStep().status());
    update_->listener()->OnLoss({.loss_sum = 1, .correct = 1, .count = 4});
    Rng rng(RngKey(static_cast<uint64_t>(step)).With(static_cast<uint64_t>(world_->rank())));
    const auto parameters = generation_.arena().parameters();
    for (const Parameter& p : parameters) {
      for (float& g : p.grad()) g = rng.Normal();
      if (&p == &parameters.back()) {
        wait();
        if (end == End::kNan && world_->rank() == 1) p.grad()[0] = std::nanf("");
        if (end == End::kAbort && world_->rank() == 1) {
          update_->Undo();
          world_->Abort(DataLoss("its disk is gone"));
          return DataLoss("its disk is gone");
        }
      }
      update_->listener()->OnReady(p);
    }
    auto result = update_->FinishStep({.loss = {.loss_sum = 1, .correct = 1, .count = 4}});
    if (!result.ok()) update_->Undo();
    return result;
  }

  // Of so many images, without a loss.
  StatusOr<StepResult> StepOf(int64_t images) {
    RT_RETURN_IF_ERROR(update_->BeginStep().status());
    const LossResult loss{.loss_sum = 0, .correct = 0, .count = images};
    update_->listener()->OnLoss(loss);
    for (const Parameter& p : generation_.arena().parameters()) {
      std::ranges::fill(p.grad(), static_cast<float>(images));
      update_->listener()->OnReady(p);
    }
    return update_->FinishStep({.loss = loss});
  }

  std::vector<float> State() {
    std::vector<float> all;
    for (const std::span<float> block : generation_.state().Blocks()) {
      all.insert(all.end(), block.begin(), block.end());
    }
    return all;
  }

 private:
  TrainingWorld* const world_;
  TrainingRun run_;
  Generation generation_;
  std::unique_ptr<UpdatePath> update_;
};

// What rank 0 holds after steps that end like this. `prepares`: each begins to be prepared before
// the last gradient is there.
std::vector<float> Train(double clip_norm, bool prepares, const std::vector<End>& ends) {
  const LoadedConfig loaded = TinyConfig(Config(clip_norm));
  TrainingWorld alone;
  const TrainingData data = TrainingData::Open(loaded.config.data(), &alone).value();
  std::vector<float> state;
  std::barrier both(kRanks);
  std::atomic<TrainingWorld*> first = nullptr;
  std::atomic<uint64_t> released = 0;
  OnTrainingRanks(kRanks, [&](TrainingWorld* world) {
    SetNumComputeThreads(1);
    if (world->leads()) first = world;
    Rank rank(loaded, data, world);
    const auto wait = [&] {
      const auto counter = [&] { return first.load()->progress()->Read().counter; };
      if (world->leads()) released = counter();
      both.arrive_and_wait();
      const auto deadline = std::chrono::steady_clock::now() + kDeadline;
      while (prepares && !world->leads() && counter() < released + kUntilPreparing) {
        ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "rank 0 prepares nothing";
        std::this_thread::yield();
      }
    };
    for (size_t i = 0; i < ends.size(); ++i) {
      const std::vector<float> before = rank.State();
      const auto result = rank.Step(static_cast<int64_t>(i), ends[i], wait);
      EXPECT_EQ(result.ok(), ends[i] != End::kAbort);
      if (result.ok()) {
        EXPECT_EQ(result->counted, ends[i] == End::kWhole);
      }
      if (ends[i] == End::kWhole) {
        EXPECT_NE(rank.State(), before);
      } else {
        EXPECT_EQ(rank.State(), before);
      }
    }
    both.arrive_and_wait();  // rank 1 reads the progress of rank 0 until here
    if (world->leads()) state = rank.State();
  });
  return state;
}

TEST(AllreduceUpdateTest, PreparedStepsHaveTheBitsOfOthers) {
  const std::vector<End> whole(3, End::kWhole);
  EXPECT_EQ(Train(0, /*prepares=*/true, whole), Train(1e9, /*prepares=*/false, whole));
}

// The step after one that is left out has nothing of it.
TEST(AllreduceUpdateTest, ANanInTheLastBucketLeavesNothingOfWhatWasPrepared) {
  const std::vector<End> ends = {End::kWhole, End::kNan, End::kWhole};
  EXPECT_EQ(Train(0, /*prepares=*/true, ends), Train(1e9, /*prepares=*/false, ends));
}

TEST(AllreduceUpdateTest, AnErrorInTheLastBucketLeavesTheStateAsItWas) {
  Train(0, /*prepares=*/true, {End::kWhole, End::kAbort});
}

// A step of the noise scale: whatever could be read of its images, it is a step.
TEST(AllreduceUpdateTest, AStepWithoutImagesCounts) {
  const LoadedConfig loaded = TinyConfig({"train.batch=1"});
  TrainingWorld alone;
  const TrainingData data = TrainingData::Open(loaded.config.data(), &alone).value();
  ASSERT_TRUE(NoiseScale::Measures(0));
  for (const int64_t images : {0, 1}) {  // that rank 0 has, and rank 1 has none
    OnTrainingRanks(kRanks, [&](TrainingWorld* world) {
      SetNumComputeThreads(1);
      Rank rank(loaded, data, world);
      const auto result = rank.StepOf(world->leads() ? images : 0);
      ASSERT_TRUE(result.ok()) << result.status().message();
      EXPECT_TRUE(result->counted);
      EXPECT_EQ(result->metrics.batch, images);
    });
  }
}

}  // namespace
}  // namespace ringtail
