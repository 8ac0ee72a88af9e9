// train.precision: AUTO: what is measured, who decides, and what is remembered.
#include "apps/trainer/decide_precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "apps/config/run_precision.h"
#include "core/stop_signal.h"
#include "tests/apps/tiny_run.h"
#include "tests/apps/trainer/thread_world.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr StepShape kStep{.images = 64, .image_size = 96};
// Twice as fast in one of them.
constexpr PrecisionSeconds kFasterInBf16{.float32 = 0.2, .bfloat16 = 0.1};
constexpr PrecisionSeconds kFasterInF32{.float32 = 0.1, .bfloat16 = 0.2};

// With the cache in a folder of its own: what another run has measured must not count.
class DecidePrecisionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    static const TempDir cache;
    setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);
  }
};

// The tiny run with AUTO. A layer of this name makes it a network of its own for the cache.
LoadedConfig AutoConfig(const std::string& layer) {
  LoadedConfig loaded = TinyConfig({"train.precision=AUTO"});
  NetConfig* const net = loaded.config.mutable_net();
  net->mutable_layer(net->layer_size() - 2)->set_name(layer);
  return loaded;
}

MeasurePrecisions Always(const PrecisionSeconds& seconds, std::atomic<int>* calls = nullptr) {
  return [=](const LoadedConfig&, const StepShape&, TrainingWorld*) {
    if (calls != nullptr) ++*calls;
    return StatusOr<PrecisionSeconds>(seconds);
  };
}

TEST(TakeFasterTest, Bf16MustBeThreePercentFaster) {
  const auto take = [](double float32, double bfloat16) {
    return TakeFaster({float32, bfloat16}, kStep).precision();
  };
  EXPECT_EQ(take(1.04, 1.0), BFLOAT16);
  EXPECT_EQ(take(1.02, 1.0), FLOAT32);
  EXPECT_EQ(take(1.0, 1.5), FLOAT32);
}

TEST(TakeFasterTest, SaysWhatItTakesAndWhy) {
  TrainConfig train;
  train.set_precision(AUTO);
  *train.mutable_measured_precision() = TakeFaster({0.0904, 0.0712}, kStep);
  EXPECT_EQ(
      DescribeTakenPrecision(train),
      "precision: bf16, measured 1.27 times as fast as f32 (71.2 against 90.4 ms for 64 images "
      "of 96 pixels, forward and backward)");
  *train.mutable_measured_precision() = TakeFaster({0.0904, 0.0895}, kStep);
  EXPECT_EQ(
      DescribeTakenPrecision(train),
      "precision: f32, since bf16 was measured 1.01 times as fast (89.5 against 90.4 ms for 64 "
      "images of 96 pixels, forward and backward), less than 1.03 times");
  train.clear_measured_precision();
  EXPECT_THAT(DescribeTakenPrecision(train), HasSubstr("AUTO has not been measured"));
}

TEST(KeepPrecisionTest, OnlyAnOpenAutoTakesWhatTheRunTook) {
  TrainConfig bf16, open, measured;
  bf16.set_precision(BFLOAT16);
  open.set_precision(AUTO);
  measured = open;
  *measured.mutable_measured_precision() = TakeFaster(kFasterInF32, kStep);
  TrainConfig now = open;
  KeepPrecision(bf16, &now);
  EXPECT_EQ(PrecisionOf(now), BFLOAT16);
  EXPECT_EQ(DescribeTakenPrecision(now), "precision: bf16, as the run began");
  KeepPrecision(measured, &now);
  EXPECT_EQ(PrecisionOf(now), BFLOAT16);
  now = open;
  KeepPrecision(open, &now);
  EXPECT_TRUE(PrecisionIsOpen(now));
  KeepPrecision(measured, &now);
  EXPECT_EQ(now.SerializeAsString(), measured.SerializeAsString());
  now = bf16;
  KeepPrecision(measured, &now);
  EXPECT_EQ(now.SerializeAsString(), bf16.SerializeAsString());
}

TEST(StepOfRunTest, IsOfThePhaseThatTakesMostOfTheTime) {
  RunConfig config;
  config.mutable_data()->set_image_size(64);
  TrainConfig* const train = config.mutable_train();
  train->set_epochs(10);
  train->set_batch(64);
  train->set_accumulation(4);
  EXPECT_EQ(StepOfRun(config).images, 16);
  EXPECT_EQ(StepOfRun(config).image_size, 64);
  PhaseConfig* phase = train->add_phase();
  phase->set_from_epoch(8);
  phase->set_image_size(96);
  EXPECT_EQ(StepOfRun(config).image_size, 64);  // 8 x 64 x 64 against 2 x 96 x 96
  phase->set_from_epoch(6);
  EXPECT_EQ(StepOfRun(config).image_size, 96);
  phase = train->add_phase();
  phase->set_from_epoch(12);  // after the end
  phase->set_image_size(512);
  EXPECT_EQ(StepOfRun(config).image_size, 96);
}

TEST(PrecisionKeyTest, IsAnotherForWhateverChangesTheStep) {
  const RunConfig config = TinyConfig().config;
  const std::string key = PrecisionKey(config, kStep, {"A"});
  EXPECT_THAT(key, AllOf(HasSubstr("A; precision of tiny "), HasSubstr("64 images of 96 pixels")));
  std::set<std::string> keys = {key};
  const auto is_new = [&](const std::string& other) { return keys.insert(other).second; };
  EXPECT_TRUE(is_new(PrecisionKey(config, {32, 96}, {"A"})));
  EXPECT_TRUE(is_new(PrecisionKey(config, {64, 64}, {"A"})));
  EXPECT_TRUE(is_new(PrecisionKey(config, kStep, {"B"})));
  EXPECT_TRUE(is_new(PrecisionKey(config, kStep, {"A", "A"})));
  EXPECT_TRUE(is_new(PrecisionKey(config, kStep, {"A", "B"})));
  EXPECT_FALSE(is_new(PrecisionKey(config, kStep, {"B", "A"})));
  const auto changed = [&](const std::string& set) {
    return PrecisionKey(TinyConfig({set}).config, kStep, {"A"});
  };
  EXPECT_TRUE(is_new(changed("net.layer[conv1].convolution.kernel=5")));
  EXPECT_TRUE(is_new(changed("net.layer[conv1].precision=FLOAT32")));
  EXPECT_TRUE(is_new(changed("train.freeze=conv1,bn1")));
  EXPECT_FALSE(is_new(changed("train.seed=7")));
}

TEST_F(DecidePrecisionTest, APrecisionThatIsNamedIsNotMeasured) {
  std::atomic<int> calls = 0;
  for (const char* named : {"train.precision=FLOAT32", "train.precision=BFLOAT16"}) {
    LoadedConfig loaded = TinyConfig({named});
    const std::string before = loaded.config.SerializeAsString();
    TrainingWorld alone;
    ASSERT_TRUE(DecidePrecision(kStep, &alone, &loaded, Always(kFasterInBf16, &calls)).ok());
    EXPECT_EQ(loaded.config.SerializeAsString(), before);
  }
  EXPECT_EQ(calls, 0);
}

TEST_F(DecidePrecisionTest, WhatWasMeasuredIsRemembered) {
  std::atomic<int> calls = 0;
  TrainingWorld alone;
  for (int i = 0; i < 2; ++i) {
    LoadedConfig loaded = AutoConfig("remembered");
    ASSERT_TRUE(DecidePrecision(kStep, &alone, &loaded, Always(kFasterInBf16, &calls)).ok());
    EXPECT_EQ(PrecisionOf(loaded.config.train()), BFLOAT16);
    EXPECT_EQ(loaded.config.train().measured_precision().bfloat16_ms(), 100);
    EXPECT_EQ(calls, 1);
  }
  LoadedConfig loaded = AutoConfig("remembered");
  RecallPrecision(kStep, &loaded);
  EXPECT_EQ(PrecisionOf(loaded.config.train()), BFLOAT16);
  LoadedConfig other = AutoConfig("never_measured");
  RecallPrecision(kStep, &other);
  EXPECT_TRUE(PrecisionIsOpen(other.config.train()));
}

TEST_F(DecidePrecisionTest, AMeasurementThatFailsDecidesNothing) {
  LoadedConfig loaded = AutoConfig("fails");
  TrainingWorld alone;
  const Status failed = DecidePrecision(
      kStep, &alone, &loaded, [](const LoadedConfig&, const StepShape&, TrainingWorld*) {
        return StatusOr<PrecisionSeconds>(ResourceExhausted("too little memory"));
      });
  EXPECT_EQ(failed.code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(PrecisionIsOpen(loaded.config.train()));
}

// All wait for the slowest: bf16 gains nothing if one of them is slow in it.
TEST_F(DecidePrecisionTest, TheSlowestRankCounts) {
  OnTrainingRanks(3, [](TrainingWorld* world) {
    LoadedConfig loaded = AutoConfig("slowest");
    const PrecisionSeconds own = world->rank() == 1 ? kFasterInF32 : kFasterInBf16;
    const Status decided = DecidePrecision(kStep, world, &loaded, Always(own));
    ASSERT_TRUE(decided.ok()) << decided.message();
    const MeasuredPrecision& taken = loaded.config.train().measured_precision();
    EXPECT_EQ(taken.precision(), FLOAT32);
    EXPECT_EQ(taken.float32_ms(), 200);
    EXPECT_EQ(taken.bfloat16_ms(), 200);
  });
}

// What its run took, whatever the others' configs say.
TEST_F(DecidePrecisionTest, RankZeroDecides) {
  std::atomic<int> calls = 0;
  OnTrainingRanks(2, [&](TrainingWorld* world) {
    LoadedConfig loaded = AutoConfig("decides");
    if (world->leads()) {
      TrainConfig run;  // as of a run that was begun with --precision f32
      KeepPrecision(run, loaded.config.mutable_train());
    } else {
      *loaded.config.mutable_train()->mutable_measured_precision() =
          TakeFaster(kFasterInBf16, kStep);
    }
    const Status decided = DecidePrecision(kStep, world, &loaded, Always(kFasterInBf16, &calls));
    ASSERT_TRUE(decided.ok()) << decided.message();
    EXPECT_FALSE(PrecisionIsOpen(loaded.config.train()));
    EXPECT_EQ(PrecisionOf(loaded.config.train()), FLOAT32);
  });
  EXPECT_EQ(calls, 0);
}

TEST_F(DecidePrecisionTest, StepsAreMeasuredInBothPrecisions) {
  const LoadedConfig loaded = AutoConfig("measured");
  TrainingWorld alone;
  SetStopSignalForTest(0);
  const auto seconds = MeasureBothPrecisions(loaded, {.images = 4, .image_size = 16}, &alone);
  ASSERT_TRUE(seconds.ok()) << seconds.status().message();
  EXPECT_GT(seconds->float32, 0);
  EXPECT_GT(seconds->bfloat16, 0);
  SetStopSignalForTest(SIGTERM);
  const auto stopped = MeasureBothPrecisions(loaded, {.images = 4, .image_size = 16}, &alone);
  EXPECT_EQ(stopped.status().code(), StatusCode::kCancelled);
  SetStopSignalForTest(0);
}

}  // namespace
}  // namespace ringtail
