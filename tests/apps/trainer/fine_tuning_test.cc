// A warm start, frozen layers, their unfreezing, and patience, in whole runs.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "apps/trainer/checkpoint/model_file.h"
#include "core/stop_signal.h"
#include "tests/apps/job.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using Kind = TrainingOutcome::Kind;
using Tensors = std::map<std::string, std::vector<float>>;
using testing::HasSubstr;

std::string Final(const TempDir& folder) { return folder.File("final.safetensors"); }

Tensors CheckpointAt(const TempDir& folder, int64_t step) {
  return ReadTensors(folder.File(fmt::format("checkpoints/step-{:08}.safetensors", step)));
}

Tensors InitialWeights(const LoadedConfig& loaded) {
  const auto model = CreateModel(loaded).value();
  model->Initialize(loaded.config.train().seed());
  Tensors weights;
  for (const auto list :
       {model->arena().parameters(), model->arena().buffers(), model->arena().fixed()}) {
    for (const Parameter& p : list) weights[p.spec.name].assign(p.value().begin(), p.value().end());
  }
  return weights;
}

const std::vector<std::string> kBody = {"conv1.weight", "conv1.bias",       "bn1.weight",
                                        "bn1.bias",     "bn1.running_mean", "bn1.running_var",
                                        "conv2.weight", "conv2.bias"};

TEST(FineTuningTest, FrozenLayersStayAndHaveNoState) {
  const TempDir folder;
  const LoadedConfig loaded = TinyConfig({"train.freeze=all-but-head"});
  ASSERT_TRUE(TrainTiny(loaded, folder.path()).ok());
  const Tensors start = InitialWeights(loaded), end = ReadTensors(Final(folder));
  const Tensors checkpoint = CheckpointAt(folder, 4 * kTinyStepsPerEpoch);
  for (const std::string& name : kBody) {
    EXPECT_EQ(end.at(name), start.at(name)) << name;
    EXPECT_EQ(checkpoint.at(name), start.at(name)) << name;
    EXPECT_FALSE(checkpoint.contains("optimizer.momentum." + name)) << name;
    EXPECT_FALSE(checkpoint.contains("average." + name)) << name;
  }
  EXPECT_NE(end.at("fc.weight"), start.at("fc.weight"));
  EXPECT_TRUE(checkpoint.contains("optimizer.momentum.fc.weight"));
  const TrainedModel read = ReadModelFile(Final(folder), {}).value();
  EXPECT_EQ(read.model->arena().num_fixed(), 0);
}

TEST(FineTuningTest, LayersAreUnfrozenAndTrain) {
  const TempDir folder;
  const LoadedConfig loaded = TinyConfig(
      {"train.freeze=all-but-head", "train.freeze_epochs=1", "train.keep_checkpoints=99"});
  StepHook hook({});
  ASSERT_EQ(TrainTiny(loaded, folder.path(), false, &hook).value().kind, Kind::kFinished);
  EXPECT_EQ(hook.losses.size(), 4U * kTinyStepsPerEpoch);
  const Tensors start = InitialWeights(loaded), end = ReadTensors(Final(folder));
  const Tensors first = CheckpointAt(folder, kTinyStepsPerEpoch);
  const Tensors later = CheckpointAt(folder, 2 * kTinyStepsPerEpoch);
  for (const std::string& name : kBody) {
    EXPECT_EQ(first.at(name), start.at(name)) << name;
    EXPECT_NE(later.at(name), start.at(name)) << name;
    EXPECT_NE(end.at(name), start.at(name)) << name;
    EXPECT_TRUE(later.contains("average." + name)) << name;
  }
  EXPECT_TRUE(later.contains("optimizer.momentum.conv1.weight"));
}

// Whatever their gradients, the first step of Adam moves all weights by the rate.
TEST(FineTuningTest, AdamCountsFromTheStepThatUnfreezes) {
  const TempDir folder;
  constexpr double kRate = 0.05;
  const LoadedConfig loaded = TinyConfig(
      {"train.freeze=all-but-head", "train.freeze_epochs=1", "train.keep_checkpoints=99",
       "train.checkpoint_every_steps=1", "optim.adam={}", "optim.constant={}", "train.epochs=2"});
  ASSERT_TRUE(TrainTiny(loaded, folder.path()).ok());
  const auto before = CheckpointAt(folder, kTinyStepsPerEpoch).at("conv1.weight");
  const auto after = CheckpointAt(folder, kTinyStepsPerEpoch + 1).at("conv1.weight");
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(std::abs(after[i] - before[i]), kRate, 0.01 * kRate) << i;
  }
}

// A run resumes from what is on the disk, however it continued in memory.
TEST(FineTuningTest, ACheckpointThatFailsBeforeLayersAreUnfrozenIsNotTakenForOne) {
  const TempDir folder;
  StepHook hook([&](int64_t step) {
    // Nothing can be renamed to these.
    std::filesystem::create_directories(
        folder.File(fmt::format("checkpoints/step-{:08}.safetensors/x", step)));
    if (step == kTinyStepsPerEpoch + 1) SetStopSignalForTest(SIGTERM);
  });
  testing::internal::CaptureStderr();
  const auto outcome = TrainTiny(TinyConfig({"train.freeze=all-but-head", "train.freeze_epochs=1"}),
                                 folder.path(), false, &hook);
  const std::string log = testing::internal::GetCapturedStderr();
  ASSERT_EQ(outcome.value().kind, Kind::kStopped);
  EXPECT_THAT(outcome->message, HasSubstr("no checkpoint was written"));
  EXPECT_THAT(log, HasSubstr("no checkpoint of step 6"));
  EXPECT_THAT(log, testing::Not(HasSubstr("stays")));
}

class StoppedFineTuningTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Rules, StoppedFineTuningTest,
                         testing::Values("optim.sgd={}", "optim.adam={}", "optim.lamb={}"));

// Before, at and after the step at which layers are unfrozen.
TEST_P(StoppedFineTuningTest, AStoppedRunEndsWithTheSameBits) {
  const std::vector<std::string> set = {"train.freeze=conv1,bn1", "train.freeze_epochs=1",
                                        GetParam()};
  const TempDir whole;
  ASSERT_TRUE(TrainTiny(TinyConfig(set), whole.path()).ok());
  for (const int64_t stop : {kTinyStepsPerEpoch - 1, kTinyStepsPerEpoch, kTinyStepsPerEpoch + 1,
                             2 * kTinyStepsPerEpoch + 2}) {
    const TempDir stopped;
    StepHook hook([&](int64_t step) {
      if (step == stop) SetStopSignalForTest(SIGTERM);
    });
    ASSERT_EQ(TrainTiny(TinyConfig(set), stopped.path(), false, &hook).value().kind,
              Kind::kStopped);
    ASSERT_EQ(TrainTiny(TinyConfig(set), stopped.path(), true).value().kind, Kind::kFinished);
    EXPECT_EQ(ReadTensors(Final(stopped)), ReadTensors(Final(whole))) << stop;
  }
}

TEST(FineTuningTest, ARunBeginsWithTheWeightsOfAnother) {
  const TempDir first, second;
  ASSERT_TRUE(TrainTiny(TinyConfig(), first.path()).ok());
  const LoadedConfig loaded =
      TinyConfig({"train.weights=\"" + first.path() + "\"", "train.freeze=all-but-head",
                  "optim.learning_rate=1e-30", "optim.ema_decay=0"});
  StepHook hook({});
  ASSERT_TRUE(TrainTiny(loaded, second.path(), false, &hook).ok());
  const Tensors start = ReadTensors(Final(first)), end = ReadTensors(Final(second));
  for (const auto& [name, values] : start) EXPECT_EQ(end.at(name), values) << name;
}

// Of every step of a run.
std::set<double> Rates(const TempDir& folder) {
  std::set<double> rates;
  for (const auto& step : ReadMetrics(folder.File("metrics.jsonl"), "step")) {
    rates.insert(step["learning_rate"].get<double>());
  }
  return rates;
}

// For 1000 images, of which these runs see 160 at most: twice the rate, but for trained weights.
const std::vector<std::string> kShort = {"optim.constant={}", "optim.batch_scaling.rule=LINEAR",
                                         "optim.batch_scaling.reference_images=1000"};

TEST(FineTuningTest, ARunThatIsResumedWithoutItsWeightsKeepsItsRate) {
  const TempDir first, tuned;
  ASSERT_TRUE(TrainTiny(TinyConfig({"train.epochs=1"}), first.path()).ok());
  std::vector<std::string> warm = kShort;
  warm.push_back("train.weights=\"" + first.path() + "\"");
  StepHook hook([](int64_t step) {
    if (step == 7) SetStopSignalForTest(SIGTERM);
  });
  ASSERT_EQ(TrainTiny(TinyConfig(warm), tuned.path(), false, &hook).value().kind, Kind::kStopped);
  ASSERT_EQ(TrainTiny(TinyConfig(kShort), tuned.path(), true).value().kind, Kind::kFinished);
  EXPECT_THAT(Rates(tuned), testing::ElementsAre(0.05));
  EXPECT_EQ(ReadMetrics(tuned.File("metrics.jsonl"), "step").size(), 4U * kTinyStepsPerEpoch);
}

// Of 40 images at first: the square root of 90 / 40 times the rate.
TEST(FineTuningTest, ARunThatIsMadeLongerKeepsItsRate) {
  const TempDir folder;
  const auto with = [](int epochs) {
    return TinyConfig({"optim.constant={}", "optim.batch_scaling.rule=LINEAR",
                       "optim.batch_scaling.reference_images=90",
                       fmt::format("train.epochs={}", epochs)});
  };
  for (const int epochs : {1, 2, 4}) {
    ASSERT_TRUE(TrainTiny(with(epochs), folder.path(), /*resume=*/epochs > 1).ok());
  }
  EXPECT_THAT(Rates(folder), testing::ElementsAre(testing::DoubleNear(0.075, 1e-9)));
  EXPECT_EQ(ReadMetrics(folder.File("metrics.jsonl"), "step").size(), 4U * kTinyStepsPerEpoch);
}

TEST(FineTuningTest, PatienceEndsARunAndItCanContinue) {
  const TempDir folder;
  // Nothing changes, so the first evaluation stays the best.
  const std::vector<std::string> set = {"optim.learning_rate=1e-30", "train.epochs=6",
                                        "train.freeze=all-but-head",
                                        "train.phase=", "optim.ema_decay=0"};
  const auto with = [&](const std::string& more) {
    std::vector<std::string> all = set;
    all.push_back(more);
    return TinyConfig(all);
  };
  const TrainingOutcome outcome = TrainTiny(with("train.patience=2"), folder.path()).value();
  EXPECT_EQ(outcome.kind, Kind::kOutOfPatience);
  EXPECT_THAT(outcome.message, HasSubstr("trained for 15 of 30 steps (no better validation "
                                         "accuracy in the last 2 evaluations after step 5"));
  EXPECT_THAT(outcome.message, HasSubstr("final.safetensors (validation "));
  EXPECT_THAT(outcome.message,
              HasSubstr(" after step 5, in " + folder.path() + "/checkpoints/best.safetensors"));
  const TrainingOutcome more = TrainTiny(with("train.patience=0"), folder.path(), true).value();
  EXPECT_EQ(more.kind, Kind::kFinished);
  EXPECT_THAT(more.message, HasSubstr("trained for 30 of 30 steps;"));
}

// Local rounds of ten steps are evaluated at their ends alone, though evaluations are due every five.
TEST(FineTuningTest, PatienceCountsEvaluationsThatWereMade) {
  const TempDir folder;
  const LoadedConfig loaded =
      TinyConfig({"optim.learning_rate=1e-30", "train.epochs=8",
                  "train.phase=", "optim.ema_decay=0", "train.freeze=all-but-head",
                  "train.patience=2", "dist.local.period=10", "dist.local.outer_momentum=0.5"});
  const TrainingOutcome outcome = TrainTiny(loaded, folder.path()).value();
  EXPECT_EQ(outcome.kind, Kind::kOutOfPatience);
  EXPECT_THAT(outcome.message, HasSubstr("trained for 30 of 40 steps (no better validation "
                                         "accuracy in the last 2 evaluations after step 10"));
}

}  // namespace
}  // namespace ringtail
