// One rank of a training job fails, in every known way: the others end and name it, rank 0 leaves a
// checkpoint of the last whole step, and the launcher's exit code is that of the true cause.
//
// RINGTAIL_FAULT_TRIALS: number of random kills (default 10).
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "apps/exit_code.h"
#include "core/random.h"
#include "core/storage/checkpoint.h"
#include "tests/apps/job.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr int kRanks = 4;

class RankFaultsTest : public testing::Test {
 protected:
  RankFaultsTest() { WriteConfig({}); }

  void WriteConfig(std::vector<std::string> overrides) const {
    overrides.insert(overrides.begin(), {"train.batch=2", "train.epochs=40", "dist.algorithm=ring",
                                         "dist.hang_timeout_s=2"});
    std::ofstream(Path("config.textproto")) << PrintTextConfig(TinyConfig(overrides).config);
  }
  std::string Path(const std::string& name) const { return folder_.File(name); }

  std::vector<std::string> Job(const std::string& fault, int rank, int64_t step,
                               const std::string& output) const {
    const std::string rank_main = RT_BINARY_DIR "/tests/apps_training_rank_main";
    return Launch(kRanks, {rank_main, Path("config.textproto"), Path(output), fault,
                           std::to_string(rank), std::to_string(step)});
  }
  ProcessResult Run(const std::string& fault, int rank, int64_t step,
                    const std::string& output = "run") const {
    return RunProcess(Job(fault, rank, step, output));
  }

  const TempDir folder_;
};

int Trials() {
  constexpr int kTrials = 10;
  const char* text = std::getenv("RINGTAIL_FAULT_TRIALS");
  return text != nullptr ? std::atoi(text) : kTrials;
}

TEST_F(RankFaultsTest, WithoutAFaultAllRanksSucceed) {
  const ProcessResult result = Run("none", 0, 0);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("[3] trained for 200 of 200 steps"));
}

TEST_F(RankFaultsTest, AKilledRankIsNamedByAll) {
  Rng random(RngKey(7).With(kTestStream));
  for (int trial = 0; trial < Trials(); ++trial) {
    const int rank = trial % kRanks;  // rank 0 in a quarter of them
    const auto step = static_cast<int64_t>(1 + random.Below(60));
    const std::string run = fmt::format("killed{}", trial);
    const ProcessResult result = Run("kill", rank, step, run);
    EXPECT_EQ(result.exit_code, kExitSignalBase + SIGKILL) << result.err;
    EXPECT_THAT(result.err, HasSubstr(fmt::format("rank {} (localhost, process", rank)));
    EXPECT_THAT(result.err, HasSubstr("ended by SIGKILL: the first to fail"));
    ExpectOthersName(rank, kRanks, result);
    if (rank == 0) continue;  // no other rank writes
    const auto newest = LoadNewestCheckpoint(Path(run));
    ASSERT_TRUE(newest.ok()) << newest.status().ToString();
    EXPECT_GE(newest->step, step);      // whole steps: that after which it was killed,
    EXPECT_LE(newest->step, step + 1);  // or the next, if its gradients for that were sent
    // Not agreed, because no rank was left to compare with, except after an evaluation.
    EXPECT_THAT(newest->agreed_ranks(), AnyOf(0, kRanks));
    EXPECT_EQ(newest->agreed_ranks() == 0, newest->file.metadata().contains("written_after"));
  }
}

struct Fault {
  std::string name;
  int exit_code;
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class EveryFaultTest : public RankFaultsTest, public testing::WithParamInterface<Fault> {};

TEST_P(EveryFaultTest, IsNamedWithItsOwnCause) {
  const ProcessResult result = Run(GetParam().name, 2, 5);
  EXPECT_EQ(result.exit_code, GetParam().exit_code) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 2 (localhost, process"));
  ExpectOthersName(2, kRanks, result);
}

INSTANTIATE_TEST_SUITE_P(All, EveryFaultTest,
                         testing::Values(Fault{"segv", kExitSignalBase + SIGSEGV},
                                         Fault{"abort", kExitSignalBase + SIGABRT},
                                         Fault{"throw", kExitSignalBase + SIGABRT},
                                         Fault{"exit0", kExitFailure}),
                         [](const auto& info) { return info.param.name; });

// Its sockets stay open, and its kernel answers.
TEST_F(RankFaultsTest, AStoppedRankIsNamedByAll) {
  const ProcessResult result = Run("stop", 1, 30);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("rank 1 (localhost, process"));
  ExpectOthersName(1, kRanks, result);
}

// It cannot know whether it is cut off or all others have ended: others may have written.
TEST_F(RankFaultsTest, ARankThatHearsNoOtherBlamesItselfAndWritesNothing) {
  WriteConfig({"train.evaluate_every_epochs=40"});
  const ProcessResult result = Run("stop_others", 0, 3);
  EXPECT_EQ(result.exit_code, kExitFailure) << result.err;
  EXPECT_THAT(result.err,
              ContainsRegex("\\[0\\] [^\n]*rank 0 [^\n]*this rank, lost all the others"));
  EXPECT_EQ(LoadNewestCheckpoint(Path("run")).status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(Path("run/final.safetensors")));
}

// For less than the limit of a hang: no error, and the same bits.
TEST_F(RankFaultsTest, AShortStopChangesNothing) {
  WriteConfig({"dist.hang_timeout_s=20", "train.epochs=10"});
  ASSERT_EQ(Run("none", 0, 0, "alone").exit_code, 0);
  ChildProcess job(Job("pid", 2, 10, "stopped"));
  pid_t pid = 0;
  while (pid == 0) {
    const auto line = job.ReadLine();
    ASSERT_TRUE(line);
    if (line->starts_with("[2] pid ")) pid = std::stoi(line->substr(8));
  }
  ASSERT_EQ(kill(pid, SIGSTOP), 0);
  std::this_thread::sleep_for(std::chrono::seconds(1));  // the fault itself
  ASSERT_EQ(kill(pid, SIGCONT), 0);
  const ProcessResult result = job.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(ReadTensors(Path("stopped/final.safetensors")),
            ReadTensors(Path("alone/final.safetensors")));
}

// Its network threads answer; only its training stops.
TEST_F(RankFaultsTest, ARankThatHangsIsNamedByAll) {
  const ProcessResult result = Run("hang", 3, 30);
  EXPECT_EQ(result.exit_code, kExitFailure) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 3 (localhost, process"));
  ExpectOthersName(3, kRanks, result);
}

TEST_F(RankFaultsTest, ASlowRankIsNamedAndTheRunGoesOn) {
  WriteConfig({"train.epochs=24"});  // some 10 s of slow steps
  const ProcessResult result = Run("slow", 1, 20);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 1"));
  EXPECT_THAT(result.err, HasSubstr("is slow"));
}

TEST_F(RankFaultsTest, AFlippedBitIsFoundAndItsRankNamed) {
  WriteConfig({"dist.check_every_steps=5", "dist.on_disagreement=STOP"});
  const ProcessResult result = Run("flip", 2, 12);
  EXPECT_EQ(result.exit_code, kExitFailure) << result.err;
  EXPECT_THAT(result.err, ContainsRegex("the weights.* of rank 2 \\(.*are not those of the other"));
  EXPECT_THAT(result.err, Not(ContainsRegex("the weights[^:]* of rank [013]")));
}

TEST_F(RankFaultsTest, ANanOnOneRankStopsAllInTheSameStep) {
  const ProcessResult result = Run("nan", 2, 12);
  EXPECT_EQ(result.exit_code, kExitNotFinite) << result.err;
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_THAT(result.out, HasSubstr(fmt::format("[{}] at step 12 rank 2", rank)));
  }
}

}  // namespace
}  // namespace ringtail
