// Runs whose batch grows where the rate would fall: the batches of a step, bits after a stop and a
// resume, and the same curve with any number of ranks.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <limits>
#include <utility>

#include "core/stop_signal.h"
#include "tests/apps/job.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using Kind = TrainingOutcome::Kind;
using testing::ElementsAre;
using testing::HasSubstr;

// The rate halves after each of 4 epochs of 5 batches of 8: 5 steps of one batch, 3 of two, which
// end one batch past the mark, and 2 of four.
LoadedConfig GrowingConfig(std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"optim.step.every_epochs=1", "optim.step.gamma=0.5",
                             "optim.batch_growth.max_batch=32"});
  return TinyConfig(more);
}
constexpr int64_t kGrownSteps = 10;

std::string Final(const TempDir& folder) { return folder.File("final.safetensors"); }

TEST(GrownBatchesTest, StepsTakeMoreBatchesInPlaceOfALowerRate) {
  const TempDir folder;
  StepHook hook({});
  ASSERT_EQ(TrainTiny(GrowingConfig(), folder.path(), false, &hook).value().kind, Kind::kFinished);
  const auto steps = ReadMetrics(folder.File("metrics.jsonl"), "step");
  ASSERT_EQ(steps.size(), static_cast<size_t>(kGrownSteps));
  std::vector<int64_t> batches;
  batches.reserve(steps.size());
  for (const auto& step : steps) batches.push_back(step["batch"]);
  EXPECT_THAT(batches, ElementsAre(8, 8, 8, 8, 8, 16, 16, 16, 32, 32));
  for (size_t i = 0; i + 1 < steps.size(); ++i) EXPECT_EQ(steps[i]["learning_rate"], 0.05) << i;
  EXPECT_EQ(steps.back()["learning_rate"], 0.025) << "eight batches would be 64 images";
  EXPECT_EQ(steps[7]["epoch"], 11.0 / 5);
  EXPECT_EQ(steps.back()["epoch"], 19.0 / 5);
  EXPECT_THAT(hook.growths,
              ElementsAre("epoch 1: batch 8 -> 16 in place of rate 0.05 -> 0.025 (batch_growth)",
                          "epoch 2.2: batch 16 -> 32 in place of rate 0.05 -> 0.025 "
                          "(batch_growth); the largest: from now on the rate falls"));
  std::vector<int64_t> evaluated;
  for (const Metrics& evaluation : hook.evaluations) evaluated.push_back(evaluation.step);
  EXPECT_THAT(evaluated, ElementsAre(5, 8, 9, 10)) << "after epochs 1, 2.2, 3 and the end";
}

// Until the batch grows the run is the same as without growth.
TEST(GrownBatchesTest, TheRunBeginsAsItWouldWithoutGrowth) {
  const TempDir grown, plain;
  StepHook grown_hook({}), plain_hook({});
  ASSERT_TRUE(TrainTiny(GrowingConfig(), grown.path(), false, &grown_hook).ok());
  const LoadedConfig config = TinyConfig({"optim.step.every_epochs=1", "optim.step.gamma=0.5"});
  ASSERT_TRUE(TrainTiny(config, plain.path(), false, &plain_hook).ok());
  ASSERT_GT(plain_hook.losses.size(), 6U);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(grown_hook.losses[i], plain_hook.losses[i]) << i;
  EXPECT_NE(grown_hook.losses[5], plain_hook.losses[5]);
}

// Before, at, and after each growth; step 8 has taken the last batch of one epoch and the first of
// the next, and the image size changes with step 9.
TEST(GrownBatchesTest, ResumeGivesTheBitsOfARunLeftAlone) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{},
        {"optim.adamw={}", "train.accumulation=2", "optim.warmup.epochs=1.4"}}) {
    const TempDir alone, stopped;
    const LoadedConfig loaded = GrowingConfig(more);
    ASSERT_EQ(TrainTiny(loaded, alone.path()).value().kind, Kind::kFinished);
    bool resume = false;
    for (const int64_t stop : {4, 5, 6, 7, 8, 9}) {
      StepHook hook([&](int64_t step) {
        if (step == stop) SetStopSignalForTest(SIGTERM);
      });
      ASSERT_EQ(TrainTiny(loaded, stopped.path(), resume, &hook).value().kind, Kind::kStopped);
      ASSERT_EQ(hook.losses.size(), resume ? 1U : 4U);
      resume = true;
    }
    ASSERT_EQ(TrainTiny(loaded, stopped.path(), resume).value().kind, Kind::kFinished);
    EXPECT_EQ(ReadTensors(Final(alone)), ReadTensors(Final(stopped)));
    EXPECT_EQ(ReadTensors(alone.File("checkpoints/best.safetensors")),
              ReadTensors(stopped.File("checkpoints/best.safetensors")));
  }
}

// With the step schedule the rate does not depend on the end, so the end may be moved.
TEST(GrownBatchesTest, MoreEpochsContinueWhereFewerEnded) {
  for (const char* epochs : {"train.epochs=1.4", "train.epochs=2.1", "train.epochs=3"}) {
    const TempDir whole, raised;
    ASSERT_TRUE(TrainTiny(GrowingConfig(), whole.path()).ok());
    ASSERT_TRUE(TrainTiny(GrowingConfig({epochs}), raised.path()).ok());
    ASSERT_TRUE(TrainTiny(GrowingConfig(), raised.path(), /*resume=*/true).ok());
    EXPECT_EQ(ReadTensors(Final(whole)), ReadTensors(Final(raised))) << epochs;
  }
}

TEST(GrownBatchesTest, WhatIsNotFiniteIsFoundInAnyBatchOfTheStep) {
  const TempDir folder;
  const TrainingOutcome outcome =
      TrainTiny(GrowingConfig({"optim.learning_rate=1e9", "optim.clip_norm=0", "train.on_nan=SKIP",
                               "optim.step.every_epochs=0.2", "train.epochs=40",
                               "train.checkpoint_every_steps=1"}),
                folder.path())
          .value();
  EXPECT_EQ(outcome.kind, Kind::kNotFinite);
  EXPECT_THAT(outcome.message, HasSubstr("layer '"));
  EXPECT_THAT(outcome.message, HasSubstr("in 11 steps in a row"));
  const auto steps = ReadMetrics(folder.File("metrics.jsonl"), "step");
  ASSERT_GE(steps.size(), 11U);
  const double per_step =
      steps.back()["epoch"].get<double>() - steps[steps.size() - 2]["epoch"].get<double>();
  EXPECT_NEAR(per_step, 4.0 / 5, 1e-9) << "steps of four batches were left out";
}

// Ruins a weight before the second growth, and repairs it before the third.
struct Saboteur : public StepHook {
  Saboteur() : StepHook({}) {}
  void OnBatchGrowth(const std::string& what) override {
    StepHook::OnBatchGrowth(what);
    if (growths.size() == 2 || growths.size() == 3) std::swap(*weight, kept);
  }
  float* weight = nullptr;
  float kept = std::numeric_limits<float>::quiet_NaN();
};

// With constant weights a step's loss depends on its images alone.
TEST(GrownBatchesTest, AfterAStepThatIsLeftOutComeTheNextImages) {
  const LoadedConfig loaded = TinyConfig({"optim.learning_rate=1e-30", "train.epochs=10",
                                          "train.on_nan=SKIP", "optim.batch_growth.max_batch=40"});
  const TempDir whole, ruined;
  StepHook hook({});
  ASSERT_TRUE(TrainTiny(loaded, whole.path(), false, &hook).ok());
  TrainingWorld alone;
  const TrainingData data = TrainingData::Open(loaded.config.data(), &alone).value();
  const auto directory = RunDirectory::Open(ruined.path()).value();
  Saboteur saboteur;
  TrainingRun run =
      TrainingRun::Create(
          {.loaded = &loaded, .data = &data, .directory = directory.get(), .observer = &saboteur})
          .value();
  saboteur.weight = run.state.model()->arena().FindParameter("fc.weight")->value().data();
  auto trainer = Trainer::Create(&run, {}, &alone).value();
  ASSERT_THAT(TrainToEnd(&trainer).value().message, HasSubstr("1 step left out"));
  const TrainingPlan& plan = trainer->generation().plan;
  const GrowthStage& left_out = plan.stages().at(2);
  ASSERT_EQ(plan.stages().at(3).first_step, left_out.first_step + 1);
  EXPECT_EQ(left_out.batches, 3);
  hook.losses.erase(hook.losses.begin() + left_out.first_step);
  EXPECT_EQ(saboteur.losses, hook.losses);
}

TEST(GrownBatchesTest, ALargestBatchThatCannotBeIsRefused) {
  const TempDir folder;
  const auto message = [&](const std::string& set) {
    const auto result = TrainTiny(GrowingConfig({set}), folder.path());
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
    return result.status().message();
  };
  EXPECT_THAT(message("optim.batch_growth.max_batch=41"), HasSubstr("40 images to train on"));
  EXPECT_THAT(message("optim.batch_growth.max_batch=7"), HasSubstr("begins with 8 images"));
  const auto clipped =
      ParseRunConfig(TinyConfigText(), "tiny.textproto",
                     std::vector<std::string>{"optim.batch_growth={}", "optim.sgd.momentum=0",
                                              "dist.compression.scheme.dgc.clip_norm=1"});
  EXPECT_THAT(clipped.status().message(), HasSubstr("does not know of a batch that grows"));
}

// The tiny run in 50 batches of 8 over all ranks, with batch norm over all of them and a rate that
// falls along a cosine.
class GrownRanksTest : public testing::Test {
 protected:
  GrownRanksTest() {
    std::ofstream(Path("config.textproto"))
        << PrintTextConfig(TinyConfig({"optim.learning_rate=0.02", "train.epochs=10",
                                       "dist.sync_batch_norm=true", "dist.check_every_steps=3",
                                       "dist.bucket_kib=2", "optim.batch_growth.max_batch=40"})
                               .config);
  }
  std::string Path(const std::string& name) const { return folder_.File(name); }

  std::vector<std::string> Train(const std::string& run, int batch,
                                 const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {
        "train",   "--config",   Path("config.textproto"),
        "--data",  TinyImages(), "--output",
        Path(run), "--set",      fmt::format("train.batch={}", batch)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return DogsVsCats(arguments);
  }
  ProcessResult RunJob(int ranks, const std::vector<std::string>& program) const {
    ProcessResult result = RunProcess(Launch(ranks, program));
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    return result;
  }
  std::vector<nlohmann::json> Steps(const std::string& run) const {
    return ReadMetrics(Path(run + "/metrics.jsonl"), "step");
  }

  void ExpectSameCurve(const std::string& run, const std::string& expected) const {
    const auto steps = Steps(run), same = Steps(expected);
    ASSERT_EQ(steps.size(), same.size()) << run;
    for (size_t i = 0; i < steps.size(); ++i) {
      const double loss = same[i]["loss"];
      EXPECT_NEAR(steps[i]["loss"], loss, 1e-4 * loss) << run << ", step " << i + 1;
      for (const char* key : {"accuracy", "batch", "learning_rate", "epoch"}) {
        EXPECT_EQ(steps[i][key], same[i][key]) << run << ", step " << i + 1 << ", " << key;
      }
    }
  }

  const TempDir folder_;
};

TEST_F(GrownRanksTest, AnyNumberOfRanksHasTheCurveOfOne) {
  const ProcessResult one = RunJob(1, Train("one", 8));
  EXPECT_THAT(one.out, HasSubstr("batch 8 -> 16 -> 24 -> 32 -> 40 in place of lower rates"));
  EXPECT_THAT(one.out, HasSubstr("epoch 5: batch 8 -> 16 in place of rate 0.02 -> 0.01"));
  const auto steps = Steps("one");
  EXPECT_LT(steps.size(), 40U);
  EXPECT_EQ(steps.back()["batch"], 40);
  RunJob(2, Train("two", 4));
  ExpectSameCurve("two", "one");
  const std::string script = "exec \"$@\" --local-batch $((5 / (RANK + 1)))";
  std::vector<std::string> uneven = {"sh", "-c", script, "sh"};
  for (const std::string& argument : Train("uneven", 8)) uneven.push_back(argument);
  RunJob(3, uneven);
  ExpectSameCurve("uneven", "one");
  // Gradients travel once per step, however many batches it takes; batch norm's sums with each.
  RunJob(2, Train("own_statistics", 4, {"--set", "dist.sync_batch_norm=false"}));
  const auto two = Steps("own_statistics");
  for (const auto& step : two) EXPECT_EQ(step["comm_bytes"], two[0]["comm_bytes"]);
}

// After the batch has grown, with more ranks: each has a smaller part of the same batches. With
// the step schedule the end may be moved, so that a run can end early and continue.
TEST_F(GrownRanksTest, MoreRanksContinueAlongTheSameCurve) {
  const auto train = [&](const std::string& run, const char* epochs) {
    return Train(run, 8,
                 {"--set", epochs, "--set", "optim.multi_step.at_epochs=1", "--set",
                  "optim.multi_step.gamma=0.5", "--resume"});
  };
  RunJob(1, train("one", "train.epochs=12"));
  RunJob(1, train("moved", "train.epochs=3.3"));
  ASSERT_FALSE(Steps("moved").empty());
  EXPECT_EQ(Steps("moved").back()["batch"], 16);
  RunJob(4, train("moved", "train.epochs=12"));
  ExpectSameCurve("moved", "one");
}

// The checkpoint has the residuals; the run continues with larger batches.
TEST_F(GrownRanksTest, CompressedGradientsContinueToTheSameBits) {
  const auto train = [&](const std::string& run, const char* epochs) {
    return Train(
        run, 4,
        {"--set", epochs, "--set", "optim.multi_step.at_epochs=1", "--set",
         "optim.multi_step.gamma=0.5", "--set", "dist.compression.scheme.one_bit={}", "--set",
         "dist.compression.min_elements=100", "--set", "dist.compression.fall_back=false", "--set",
         "dist.compression.route=SHARDED", "--resume"});
  };
  RunJob(2, train("alone", "train.epochs=6"));
  for (const char* epochs : {"train.epochs=0.8", "train.epochs=3.3", "train.epochs=6"}) {
    RunJob(2, train("stopped", epochs));
  }
  EXPECT_EQ(ReadTensors(Path("alone/final.safetensors")),
            ReadTensors(Path("stopped/final.safetensors")));
}

// Constant weights, and classes that no image has (see several_ranks_test.cc): the estimate does
// not depend on how many images a step takes.
TEST_F(GrownRanksTest, TheNoiseScaleIsThatOfAnyBatch) {
  const auto scale = [&](const std::string& run, const std::vector<std::string>& more) {
    std::vector<std::string> all = {
        "--set", "optim.learning_rate=1e-30",      "--set", "train.epochs=40",
        "--set", "train.evaluate_every_epochs=40", "--set", "net.layer[fc].linear.out_features=8",
        "--set", "optim.multi_step.at_epochs=8",   "--set", "optim.multi_step.gamma=0.1"};
    all.insert(all.end(), more.begin(), more.end());
    RunJob(2, Train(run, 4, all));
    const auto steps = Steps(run);
    return steps.empty() ? 0.0 : steps.back()["noise_scale"].get<double>();
  };
  // One batch a step until epoch 8, then five.
  const double grown = scale("grown", {}),
               plain = scale("plain", {"--set", "optim.batch_growth.max_batch=8"});
  ASSERT_FALSE(Steps("grown").empty());
  EXPECT_EQ(Steps("grown").back()["batch"], 40);
  EXPECT_EQ(Steps("plain").back()["batch"], 8);
  EXPECT_GT(plain, 1);
  EXPECT_NEAR(grown, plain, 0.3 * plain);
}

}  // namespace
}  // namespace ringtail
