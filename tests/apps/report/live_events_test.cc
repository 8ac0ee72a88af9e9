// TensorBoard's event files while a run trains, after it was stopped, and resumed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "apps/report/run_history.h"
#include "apps/report/tensorboard_events.h"
#include "core/stop_signal.h"
#include "core/storage/file.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

// The event file of a part, as it is now; empty: none.
std::string Events(const TempDir& run, const std::string& part) {
  const std::string folder = run.File("tensorboard/" + part);
  const auto names = EventFileNames(folder);
  EXPECT_LE(names.size(), 1U);
  return names.empty() ? "" : ReadFileText(folder + "/" + names[0], 1 << 24).value();
}

std::string ExpectedTraining(const TempDir& run) {
  return EventFile(ReadRunHistory(run.File("metrics.jsonl")).value().training);
}

TEST(LiveEventsTest, EachStepIsThereWhenItIsDone) {
  const TempDir run;
  std::vector<size_t> sizes;
  StepHook hook([&](int64_t step) {
    EXPECT_EQ(Events(run, "train"), ExpectedTraining(run)) << step;
    sizes.push_back(Events(run, "train").size());
  });
  ASSERT_TRUE(TrainTiny(TinyConfig(), run.path(), /*resume=*/false, &hook).ok());
  ASSERT_EQ(sizes.size(), 4U * kTinyStepsPerEpoch);
  for (size_t i = 1; i < sizes.size(); ++i) EXPECT_GT(sizes[i], sizes[i - 1]);
  const RunHistory history = ReadRunHistory(run.File("metrics.jsonl")).value();
  EXPECT_EQ(history.evaluation.size(), 4U);
  EXPECT_EQ(Events(run, "validation"), EventFile(history.evaluation));
}

TEST(LiveEventsTest, AResumedRunHasEachStepOnce) {
  const TempDir run;
  // Stopped in its second epoch; steps after its checkpoint are written again.
  StepHook stop([](int64_t step) {
    if (step == kTinyStepsPerEpoch + 2) SetStopSignalForTest(SIGTERM);
  });
  ASSERT_EQ(TrainTiny(TinyConfig(), run.path(), /*resume=*/false, &stop).value().kind,
            TrainingOutcome::Kind::kStopped);
  const auto before = EventFileNames(run.File("tensorboard/train"));
  const auto newest = run.File("checkpoints/step-00000007.safetensors");
  ASSERT_TRUE(std::filesystem::remove(newest));
  ASSERT_TRUE(TrainTiny(TinyConfig(), run.path(), /*resume=*/true).ok());
  EXPECT_EQ(Events(run, "train"), ExpectedTraining(run));
  EXPECT_GT(EventFileNames(run.File("tensorboard/train")), before);
  const auto training = ReadRunHistory(run.File("metrics.jsonl")).value().training;
  ASSERT_EQ(training.size(), 4U * kTinyStepsPerEpoch);
  for (size_t i = 0; i < training.size(); ++i) {
    EXPECT_EQ(training[i].step, static_cast<int64_t>(i) + 1);
  }
}

TEST(LiveEventsTest, ARunWhoseEventsCannotBeWrittenTrains) {
  const TempDir run;
  ASSERT_TRUE(WriteFileAtomic(run.File("tensorboard"), "in the way").ok());
  const auto outcome = TrainTiny(TinyConfig(), run.path());
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(ReadRunHistory(run.File("metrics.jsonl")).value().training.size(),
            4U * kTinyStepsPerEpoch);
}

}  // namespace
}  // namespace ringtail
