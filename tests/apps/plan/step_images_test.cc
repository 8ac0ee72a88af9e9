#include "apps/plan/step_images.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "apps/trainer/training_world.h"
#include "core/machine/processor_time.h"
#include "core/machine/thread_budget.h"
#include "core/stopwatch.h"
#include "data/worker_pool.h"
#include "tests/apps/tiny_run.h"

namespace ringtail {
namespace {

constexpr int64_t kImageSize = 16;  // pixels
constexpr int kAllCores = 1 << 10;  // so many ranks here that none has a core to spare

class StepImagesTest : public testing::Test {
 protected:
  StepImagesTest() {
    loaded_.config.mutable_data()->set_path(TinyImages());
    auto data = TrainingData::Open(loaded_.config.data(), &alone_);
    EXPECT_TRUE(data.ok()) << data.status().message();
    data_ = std::make_unique<TrainingData>(*std::move(data));
    auto model = CreateModel(loaded_);
    EXPECT_TRUE(model.ok()) << model.status().message();
    model_ = *std::move(model);
  }

  std::unique_ptr<StepImages> Images(int64_t batch, const TrainingData* data, int ranks_here) {
    auto images = StepImages::Create(
        *model_, loaded_.config,
        {.batch = batch, .image_size = kImageSize, .data = data, .ranks_here = ranks_here});
    EXPECT_TRUE(images.ok()) << images.status().message();
    return *std::move(images);
  }

  // Whether batches differ from each other: those in memory are one batch.
  static bool Changes(StepImages* images, int64_t batch) {
    std::vector<std::vector<float>> pixels;
    for (int i = 0; i < 2; ++i) {
      const auto view = images->Next();
      EXPECT_TRUE(view.ok()) << view.status().message();
      EXPECT_EQ(std::ssize(view->labels), batch);
      pixels.emplace_back(view->images, view->images + batch * 3 * kImageSize * kImageSize);
    }
    return pixels[0] != pixels[1];
  }

  LoadedConfig loaded_ = TinyConfig({});
  TrainingWorld alone_;
  std::unique_ptr<TrainingData> data_;
  std::unique_ptr<Model> model_;
};

TEST_F(StepImagesTest, AreTheRunsOwnWhereInputThreadsShareTheCores) {
  EXPECT_TRUE(Changes(Images(2, data_.get(), kAllCores).get(), 2));
  EXPECT_FALSE(Changes(Images(2, nullptr, kAllCores).get(), 2));
  const auto many = std::ssize(data_->split.train) + 1;  // more than there are
  EXPECT_FALSE(Changes(Images(many, data_.get(), kAllCores).get(), many));
}

TEST(ComputeWatchTest, LeavesOutWhatInputThreadsTake) {
  constexpr double kTaken = 0.02, kCores = 2;
  std::atomic<int> stage = 0;
  const auto reach = [&stage](int next) {
    stage = next;
    stage.notify_all();
  };
  const auto wait_for = [&stage](int wanted) {
    for (int now = stage; now != wanted; now = stage) stage.wait(now);
  };
  std::thread input([&] {
    SetThreadName(kLoaderThreads);
    reach(1);
    wait_for(2);
    const double begin = ThreadSeconds();
    while (ThreadSeconds() - begin < kTaken) {
    }
    reach(3);
    wait_for(4);
  });
  ComputeWatch watch(kCores);  // earlier than it sees the thread
  wait_for(1);
  const Stopwatch all;
  watch.Start();
  reach(2);
  wait_for(3);
  const double computing = watch.Restart(), by_the_clock = all.Seconds();
  reach(4);
  input.join();
  EXPECT_GT(computing, 0);
  EXPECT_LE(computing, by_the_clock - 0.9 * kTaken / kCores);
}

}  // namespace
}  // namespace ringtail
