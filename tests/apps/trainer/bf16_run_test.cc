// Runs whose activations are bf16: what a run promises holds as in f32.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/trainer/checkpoint/model_file.h"
#include "apps/trainer/evaluation.h"
#include "apps/trainer/trainer.h"
#include "core/stop_signal.h"
#include "data/dataset.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using Kind = TrainingOutcome::Kind;
using testing::HasSubstr;

LoadedConfig Bf16Config(std::vector<std::string> overrides = {}) {
  overrides.emplace_back("train.precision=BFLOAT16");
  return TinyConfig(overrides);
}

std::string Final(const TempDir& folder) { return folder.File("final.safetensors"); }

TEST(Bf16RunTest, ResumeGivesTheBitsOfARunLeftAlone) {
  const TempDir alone, stopped, f32;
  const LoadedConfig loaded = Bf16Config({"train.accumulation=2"});
  ASSERT_EQ(TrainTiny(loaded, alone.path()).value().kind, Kind::kFinished);
  bool resume = false;
  for (const int64_t stop : {1, 7, 10}) {
    StepHook hook([&](int64_t step) {
      if (step == stop) SetStopSignalForTest(SIGTERM);
    });
    ASSERT_EQ(TrainTiny(loaded, stopped.path(), resume, &hook).value().kind, Kind::kStopped);
    resume = true;
  }
  ASSERT_EQ(TrainTiny(loaded, stopped.path(), resume).value().kind, Kind::kFinished);
  EXPECT_EQ(ReadTensors(Final(alone)), ReadTensors(Final(stopped)));
  ASSERT_EQ(TrainTiny(TinyConfig({"train.accumulation=2"}), f32.path()).value().kind,
            Kind::kFinished);
  EXPECT_NE(ReadTensors(Final(alone)), ReadTensors(Final(f32)));
}

TEST(Bf16RunTest, AnotherPrecisionIsAnotherRun) {
  const TempDir folder;
  StepHook hook([](int64_t step) {
    if (step == 2) SetStopSignalForTest(SIGINT);
  });
  ASSERT_TRUE(TrainTiny(Bf16Config(), folder.path(), false, &hook).ok());
  const auto refused = TrainTiny(TinyConfig(), folder.path(), true);
  EXPECT_EQ(refused.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(), HasSubstr("train.precision: BFLOAT16 -> FLOAT32"));
}

TEST(Bf16RunTest, WhatOnePrecisionTrainsTheOtherEvaluates) {
  const TempDir folder;
  ASSERT_TRUE(TrainTiny(Bf16Config(), folder.path()).ok());
  std::vector<double> losses;
  for (const char* precision : {"FLOAT32", "BFLOAT16"}) {
    const std::vector<std::string> overrides = {std::string("train.precision=") + precision};
    auto trained = ReadModelFile(Final(folder), overrides);
    ASSERT_TRUE(trained.ok()) << trained.status().ToString();
    const RunConfig& config = trained->loaded.config;
    const auto dataset = Dataset::Open(config.data()).value();
    const std::vector<int64_t> images = {0, 1, 2, 3, 4, 5, 6, 7};
    const auto logits = ComputeLogits(trained->model.get(), *dataset, images, config.data(),
                                      EvaluationOptionsOf(config));
    ASSERT_TRUE(logits.ok()) << logits.status().ToString();
    losses.push_back(Score(*logits, *dataset, images).loss());
  }
  EXPECT_NE(losses[0], losses[1]);
  EXPECT_NEAR(losses[0], losses[1], 0.02 * losses[0]);
}

// `taken`: as if it had been measured.
LoadedConfig AutoConfig(const std::string& taken) {
  return TinyConfig({"train.precision=AUTO", "train.measured_precision.precision=" + taken});
}

TEST(Bf16RunTest, AutoTrainsWithTheBitsOfWhatItTakes) {
  const TempDir chosen, named, f32;
  ASSERT_TRUE(TrainTiny(AutoConfig("BFLOAT16"), chosen.path()).ok());
  ASSERT_TRUE(TrainTiny(Bf16Config(), named.path()).ok());
  EXPECT_EQ(ReadTensors(Final(chosen)), ReadTensors(Final(named)));
  ASSERT_TRUE(TrainTiny(AutoConfig("FLOAT32"), f32.path()).ok());
  EXPECT_NE(ReadTensors(Final(chosen)), ReadTensors(Final(f32)));
}

TEST(Bf16RunTest, AutoKeepsWhatItTookWhenItIsResumedAndEvaluated) {
  const TempDir alone, stopped;
  ASSERT_TRUE(TrainTiny(Bf16Config(), alone.path()).ok());
  StepHook hook([](int64_t step) {
    if (step == 7) SetStopSignalForTest(SIGTERM);
  });
  ASSERT_TRUE(TrainTiny(AutoConfig("BFLOAT16"), stopped.path(), false, &hook).ok());
  const auto refused = TrainTiny(AutoConfig("FLOAT32"), stopped.path(), true);
  EXPECT_THAT(refused.status().message(), HasSubstr("train.precision: BFLOAT16 -> FLOAT32"));
  const LoadedConfig of_run =
      LoadRunConfig(stopped.File("config.textproto"), {}).value();  // as --resume reads it
  ASSERT_TRUE(TrainTiny(of_run, stopped.path(), true).ok());
  EXPECT_EQ(ReadTensors(Final(alone)), ReadTensors(Final(stopped)));
  const std::vector<std::string> automatic = {"train.precision=AUTO"};
  for (const TempDir* run : {&alone, &stopped}) {
    const auto trained = ReadModelFile(Final(*run), automatic);
    ASSERT_TRUE(trained.ok()) << trained.status().message();
    EXPECT_EQ(trained->model->blob_type(), BlobType::kBf16);
  }
}

TEST(Bf16RunTest, ALearningRateOfABillionStopsTheRunAndNamesTheLayer) {
  const TempDir folder;
  const TrainingOutcome outcome =
      TrainTiny(Bf16Config({"optim.learning_rate=1e9", "optim.clip_norm=0",
                            "train.checkpoint_every_steps=1"}),
                folder.path())
          .value();
  EXPECT_EQ(outcome.kind, Kind::kNotFinite);
  EXPECT_THAT(outcome.message, HasSubstr("layer '"));
  EXPECT_FALSE(std::filesystem::exists(Final(folder)));
}

}  // namespace
}  // namespace ringtail
