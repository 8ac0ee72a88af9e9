#include "apps/trainer/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <vector>

#include "core/stop_signal.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using Kind = TrainingOutcome::Kind;
using testing::HasSubstr;

std::string Final(const TempDir& folder) { return folder.File("final.safetensors"); }

double Mean(const std::vector<double>& values, size_t begin, size_t end) {
  return std::accumulate(values.begin() + static_cast<int64_t>(begin),
                         values.begin() + static_cast<int64_t>(end), 0.0) /
         static_cast<double>(end - begin);
}

// Trains, is told to stop after each step of `stops`, and resumes, until it has finished.
void TrainWithStops(const LoadedConfig& loaded, const std::string& output,
                    const std::vector<int64_t>& stops) {
  bool resume = false;
  for (const int64_t stop : stops) {
    StepHook hook([&](int64_t step) {
      if (step == stop) SetStopSignalForTest(SIGTERM);
    });
    ASSERT_EQ(TrainTiny(loaded, output, resume, &hook).value().kind, Kind::kStopped) << stop;
    resume = true;
  }
  ASSERT_EQ(TrainTiny(loaded, output, resume).value().kind, Kind::kFinished);
}

TEST(TrainerTest, LossFalls) {
  const TempDir folder;
  StepHook hook({});
  const LoadedConfig loaded =
      TinyConfig({"train.epochs=60", "optim.adam={}", "optim.learning_rate=0.01",
                  "data.augment.min_area=0.9", "net.layer[dropout].dropout.rate=0"});
  ASSERT_EQ(TrainTiny(loaded, folder.path(), false, &hook).value().kind, Kind::kFinished);
  ASSERT_EQ(hook.losses.size(), 60U * kTinyStepsPerEpoch);
  EXPECT_LT(Mean(hook.losses, 280, 300), 0.8 * Mean(hook.losses, 0, 20));
}

// Too many images are gone: what was reached by then is on the disk, not only the last
// evaluation.
TEST(TrainerTest, ARunThatFailsLeavesItsLastWholeStep) {
  const TempDir folder, images;
  std::filesystem::copy(TinyImages(), images.path(), std::filesystem::copy_options::recursive);
  int64_t reached = 0;
  StepHook hook([&](int64_t step) {
    reached = step;
    if (step != kTinyStepsPerEpoch + 1) return;
    for (const auto& file : std::filesystem::recursive_directory_iterator(images.path())) {
      if (file.path().extension() == ".jpg") std::filesystem::remove(file.path());
    }
  });
  const LoadedConfig loaded = TinyConfig({"data.path=\"" + images.path() + "\"", "data.cache_mib=0",
                                          "train.epochs=40", "data.bad_images.max_fraction=0.1"});
  const auto outcome = TrainTiny(loaded, folder.path(), false, &hook);
  ASSERT_FALSE(outcome.ok());
  ASSERT_NE(reached % kTinyStepsPerEpoch, 0) << "there is a checkpoint of its own then";
  const auto newest = LoadNewestCheckpoint(folder.path());
  ASSERT_TRUE(newest.ok()) << newest.status().message();
  EXPECT_EQ(newest->step, reached);
  EXPECT_EQ(newest->agreed_ranks(), 1);
  EXPECT_EQ(newest->file.metadata().at("written_after"), outcome.status().message());
}

TEST(TrainerTest, TwoRunsGiveTheSameBits) {
  const TempDir one, two, other_seed;
  ASSERT_TRUE(TrainTiny(TinyConfig(), one.path()).ok());
  ASSERT_TRUE(TrainTiny(TinyConfig({"data.workers=1", "data.cache_mib=0"}), two.path()).ok());
  ASSERT_TRUE(TrainTiny(TinyConfig({"train.seed=2"}), other_seed.path()).ok());
  EXPECT_EQ(ReadTensors(Final(one)), ReadTensors(Final(two)));
  EXPECT_NE(ReadTensors(Final(one)), ReadTensors(Final(other_seed)));
}

// Step 1: within the first epoch. 5: an evaluation is due. 7: mid-epoch. 10: the size changes.
TEST(TrainerTest, ResumeGivesTheBitsOfARunLeftAlone) {
  for (const std::vector<std::string>& overrides :
       {std::vector<std::string>{},
        {"optim.adamw={}", "train.accumulation=2"},
        {"data.augment.mixup.alpha=0.2", "data.augment.cutmix.alpha=1", "data.class_balance=0.5"},
        {"optim.ema_decay=0", "optim.constant={}", "train.evaluate_every_epochs=0.4"}}) {
    const TempDir alone, stopped;
    const LoadedConfig loaded = TinyConfig(overrides);
    ASSERT_EQ(TrainTiny(loaded, alone.path()).value().kind, Kind::kFinished);
    TrainWithStops(loaded, stopped.path(), {1, 5, 7, 10, 13});
    EXPECT_EQ(ReadTensors(Final(alone)), ReadTensors(Final(stopped)));
    EXPECT_EQ(ReadTensors(alone.File("checkpoints/best.safetensors")),
              ReadTensors(stopped.File("checkpoints/best.safetensors")));
  }
}

// The metrics of a run that was stopped are those of a run left alone, too, but for the times.
TEST(TrainerTest, MetricsOfAResumedRunHaveEveryStepOnce) {
  const TempDir folder;
  TrainWithStops(TinyConfig(), folder.path(), {3, 8});
  std::ifstream metrics(folder.File("metrics.jsonl"));
  std::vector<int> steps(4 * kTinyStepsPerEpoch + 1), evaluations(steps.size());
  for (std::string line; std::getline(metrics, line);) {
    const auto at = line.find("\"step\":", line.find(','));
    const int step = std::stoi(line.substr(at + 7));
    ++(line.find("\"kind\":\"evaluation\"") == std::string::npos ? steps : evaluations)[step];
  }
  for (size_t step = 1; step < steps.size(); ++step) {
    EXPECT_EQ(steps[step], 1) << step;
    EXPECT_EQ(evaluations[step], step % kTinyStepsPerEpoch == 0 ? 1 : 0) << step;
  }
}

// Where ranks take steps of their own, evaluations are due within a round and made at its end: of steps
// 5, 10, 15 and 20 after 6, 10, 16 and 20.
TEST(TrainerTest, AnEvaluationThatWasBrokenOffIsMadeByTheResumedRun) {
  const auto steps = [](const StepHook& hook) {
    std::vector<int64_t> made;
    for (const Metrics& evaluation : hook.evaluations) made.push_back(evaluation.step);
    return made;
  };
  const LoadedConfig loaded = TinyConfig({"dist.local.period=3", "dist.local.outer_momentum=0.5"});
  const TempDir alone, stopped;
  StepHook whole({});
  ASSERT_TRUE(TrainTiny(loaded, alone.path(), false, &whole).ok());
  ASSERT_THAT(steps(whole), testing::ElementsAre(6, 10, 16, 20));
  StepHook first([](int64_t step) {
    if (step == 6) SetStopSignalForTest(SIGTERM);
  });
  ASSERT_EQ(TrainTiny(loaded, stopped.path(), false, &first).value().kind, Kind::kStopped);
  EXPECT_TRUE(first.evaluations.empty());
  StepHook rest({});
  ASSERT_TRUE(TrainTiny(loaded, stopped.path(), true, &rest).ok());
  EXPECT_EQ(steps(rest), steps(whole));
  EXPECT_EQ(ReadTensors(Final(stopped)), ReadTensors(Final(alone)));
}

TEST(TrainerTest, AnotherConfigOrOtherImagesAreRefused) {
  const TempDir folder;
  StepHook hook([](int64_t step) {
    if (step == 2) SetStopSignalForTest(SIGINT);
  });
  ASSERT_TRUE(TrainTiny(TinyConfig(), folder.path(), false, &hook).ok());
  const auto refused = TrainTiny(TinyConfig({"train.batch=10"}), folder.path(), true);
  EXPECT_EQ(refused.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(), HasSubstr("train.batch: 8 -> 10"));

  const TempDir fewer;
  std::filesystem::copy(TinyImages(), fewer.path(), std::filesystem::copy_options::recursive);
  std::filesystem::remove(fewer.File("train/cat.0.jpg"));
  LoadedConfig other = TinyConfig();
  other.config.mutable_data()->set_path(fewer.path());
  const auto other_images = TrainTiny(other, folder.path(), true);
  EXPECT_THAT(other_images.status().message(), HasSubstr("the images or their split are not"));
  EXPECT_THAT(other_images.status().message(),
              HasSubstr("(40 to train on, 8 to validate, 0 left out; now "));
}

void SwapFiles(const std::string& a, const std::string& b) {
  std::filesystem::rename(a, a + ".aside");
  std::filesystem::rename(b, a);
  std::filesystem::rename(a + ".aside", b);
}

TEST(TrainerTest, OtherFilesBehindTheSameNamesAreRefused) {
  const TempDir folder, swapped;
  StepHook hook([](int64_t step) {
    if (step == 2) SetStopSignalForTest(SIGINT);
  });
  ASSERT_TRUE(TrainTiny(TinyConfig(), folder.path(), false, &hook).ok());
  std::filesystem::copy(TinyImages(), swapped.path(), std::filesystem::copy_options::recursive);
  LoadedConfig other = TinyConfig({"train.until_accuracy=0.001"});
  other.config.mutable_data()->set_path(swapped.path());
  SwapFiles(swapped.File("train/cat.0.jpg"), swapped.File("train/dog.0.jpg"));
  const Status refused = TrainTiny(other, folder.path(), true).status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("what is in their files is not the same"));
  SwapFiles(swapped.File("train/cat.0.jpg"), swapped.File("train/dog.0.jpg"));
  EXPECT_TRUE(TrainTiny(other, folder.path(), true).ok());
}

// All of them go after the first step: whatever the policy allows, that is no training.
TEST(TrainerTest, NoImagesAtAllEndTheRun) {
  const TempDir folder, images;
  std::filesystem::copy(TinyImages(), images.path(), std::filesystem::copy_options::recursive);
  LoadedConfig loaded =
      TinyConfig({"data.bad_images.max_fraction=1", "data.cache_mib=0", "train.epochs=50"});
  loaded.config.mutable_data()->set_path(images.path());
  StepHook hook([&](int64_t step) {
    if (step == 1) std::filesystem::remove_all(images.File("train"));
  });
  const Status status = TrainTiny(loaded, folder.path(), false, &hook).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("none of the "));
  EXPECT_LT(hook.losses.size(), 2U * kTinyStepsPerEpoch);
}

TEST(TrainerTest, StopsAtTheAccuracyThatWasAskedFor) {
  const TempDir folder;
  StepHook hook({});
  const LoadedConfig loaded = TinyConfig({"train.until_accuracy=0.25"});
  EXPECT_EQ(TrainTiny(loaded, folder.path(), false, &hook).value().kind, Kind::kReachedAccuracy);
  EXPECT_LT(hook.losses.size(), 4U * kTinyStepsPerEpoch);
  EXPECT_GE(hook.evaluations.back().accuracy, 0.25);
  EXPECT_TRUE(std::filesystem::exists(Final(folder)));
  // Resuming it notices that there is nothing left to do.
  StepHook again({});
  EXPECT_EQ(TrainTiny(loaded, folder.path(), true, &again).value().kind, Kind::kReachedAccuracy);
  EXPECT_TRUE(again.losses.empty());
}

TEST(TrainerTest, ALearningRateOfABillionStopsTheRunAndNamesTheLayer) {
  const TempDir folder;
  const TrainingOutcome outcome =
      TrainTiny(TinyConfig({"optim.learning_rate=1e9", "optim.clip_norm=0",
                            "train.checkpoint_every_steps=1"}),
                folder.path())
          .value();
  EXPECT_EQ(outcome.kind, Kind::kNotFinite);
  EXPECT_THAT(outcome.message, HasSubstr("layer '"));
  EXPECT_THAT(outcome.message, HasSubstr("optim.learning_rate"));
  EXPECT_FALSE(std::filesystem::exists(Final(folder)));
  const Checkpoint newest = LoadNewestCheckpoint(folder.path()).value();
  for (const auto& [name, values] : ReadTensors(newest.path)) {
    for (const float value : values) ASSERT_TRUE(std::isfinite(value)) << name;
  }
}

TEST(TrainerTest, AnInfiniteLastUpdateStopsTheRun) {
  const TempDir folder;
  const TrainingOutcome outcome =
      TrainTiny(TinyConfig({"optim.learning_rate=1e38", "optim.weight_decay=1e38",
                            "optim.clip_norm=0", "train.epochs=0.2"}),
                folder.path())
          .value();
  EXPECT_EQ(outcome.kind, Kind::kNotFinite);
  EXPECT_THAT(outcome.message, HasSubstr("at step 1 '"));
  EXPECT_FALSE(std::filesystem::exists(Final(folder)));
}

TEST(TrainerTest, SkippingKeepsTheWeightsFiniteAndEndsWhenNothingElseHappens) {
  const TempDir folder;
  const TrainingOutcome outcome =
      TrainTiny(TinyConfig({"optim.learning_rate=1e9", "optim.clip_norm=0", "train.on_nan=SKIP",
                            "train.checkpoint_every_steps=1"}),
                folder.path())
          .value();
  EXPECT_EQ(outcome.kind, Kind::kNotFinite);
  EXPECT_THAT(outcome.message, HasSubstr("in 11 steps in a row"));
  for (const auto& [name, values] : ReadTensors(LoadNewestCheckpoint(folder.path())->path)) {
    for (const float value : values) ASSERT_TRUE(std::isfinite(value)) << name;
  }
}

// Recorded with AVX-512; other instruction sets round differently. A change in what these are is a
// change in what every run computes: initial weights, order, crops, forward, backward, update.
TEST(TrainerTest, TenGoldenLosses) {
  constexpr double kTolerance = 1e-4;  // relative
  const std::vector<double> golden = {0.656505, 0.739692, 0.835291, 0.733136, 0.719762,
                                      0.633426, 0.723497, 0.685032, 0.670006, 0.709768};
  const TempDir folder;
  StepHook hook({});
  ASSERT_TRUE(TrainTiny(TinyConfig(), folder.path(), false, &hook).ok());
  ASSERT_GE(hook.losses.size(), 10U);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(hook.losses[i], golden.at(i), kTolerance * golden.at(i)) << "step " << i + 1;
  }
}

TEST(TrainerTest, MoreClassesThanTheNetworkHasAreRefused) {
  const TempDir folder, images;
  for (const std::string name : {"bird", "cat", "dog"}) {
    std::filesystem::create_directories(images.File(name));
    for (int i = 0; i < 8; ++i) {
      std::filesystem::copy(TinyImages() + "/train/cat." + std::to_string(i) + ".jpg",
                            images.File(name + "/" + std::to_string(i) + ".jpg"));
    }
  }
  LoadedConfig loaded = TinyConfig();
  loaded.config.mutable_data()->set_path(images.path());
  EXPECT_THAT(TrainTiny(loaded, folder.path()).status().message(),
              HasSubstr("3 classes (bird, cat, dog), the network tells 2 apart"));
}

TEST(TrainerTest, FewerImagesThanABatchAreRefused) {
  const TempDir folder;
  const auto result = TrainTiny(TinyConfig({"train.batch=64"}), folder.path());
  EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(result.status().message(), HasSubstr("fewer than one batch of 64"));
}

}  // namespace
}  // namespace ringtail
