// A rank of a pipeline that is lost in the middle of a schedule: the others name it and end, and any
// form of the job continues from the last checkpoint to the same bits.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/random.h"
#include "tests/apps/job.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

constexpr int kRanks = 3, kTrials = 6;

class PipelineFaultsTest : public testing::Test {
 protected:
  PipelineFaultsTest() {
    const std::string pipeline =
        "dist.model_parallel.pipeline={ stages: 3 cut_after: [\"conv2\", \"dropout\"] }";
    const LoadedConfig loaded =
        TinyConfig({"train.batch=8", "train.accumulation=4", "train.epochs=60",
                    "train.checkpoint_every_steps=20", "dist.hang_timeout_s=2", pipeline});
    std::ofstream(Path("config.textproto")) << PrintTextConfig(loaded.config);
  }
  std::string Path(const std::string& name) const { return folder_.File(name); }
  std::vector<std::string> Job(int ranks, const std::string& run, const std::string& fault,
                               int rank, const std::string& from = "") const {
    std::vector<std::string> program = {RT_BINARY_DIR "/tests/apps_training_rank_main",
                                        Path("config.textproto"),
                                        Path(run),
                                        fault,
                                        std::to_string(rank),
                                        "25"};
    if (!from.empty()) program.push_back(Path(from));
    return Launch(ranks, program);
  }
  static void ExpectOthersName(int rank, const std::string& err) {
    for (int other = 0; other < kRanks; ++other) {
      if (other == rank) continue;
      bool named = false;
      std::istringstream lines(err);
      for (std::string line; std::getline(lines, line);) {
        named = named || (line.starts_with(fmt::format("[{}] ", other)) &&
                          line.find(fmt::format("rank {}", rank)) != std::string::npos);
      }
      EXPECT_TRUE(named) << "rank " << other << " does not name rank " << rank << ":\n" << err;
    }
  }

  const TempDir folder_;
};

TEST_F(PipelineFaultsTest, AKilledStageIsNamedAndAnyFormContinues) {
  const ProcessResult whole = RunProcess(Job(kRanks, "whole", "none", 0));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const auto expected = ReadTensors(Path("whole/final.safetensors"));
  Rng random(RngKey(11).With(kTestStream));
  for (int trial = 0; trial < kTrials; ++trial) {
    const int rank = trial % kRanks;
    const std::string run = fmt::format("killed{}", trial);
    ChildProcess job(Job(kRanks, run, "pid", rank));
    pid_t pid = 0;
    while (pid == 0) {
      const auto line = job.ReadLine();
      ASSERT_TRUE(line.has_value());
      const size_t at = line->find("pid ");
      if (at != std::string::npos) pid = std::stoi(line->substr(at + 4));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random.Below(20'000)));
    kill(pid, SIGKILL);
    const ProcessResult result = job.Wait();
    EXPECT_NE(result.exit_code, 0);
    ExpectOthersName(rank, result.err);
    const int ranks = trial % 2 == 0 ? kRanks : 1;  // as stages, or on one machine
    const ProcessResult resumed = RunProcess(Job(ranks, run, "none", 0, run));
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(ReadTensors(Path(run + "/final.safetensors")), expected) << run;
  }
}

TEST_F(PipelineFaultsTest, AStoppedStageIsNamed) {
  const ProcessResult result = RunProcess(Job(kRanks, "stopped", "stop", 1));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("rank 1 (localhost, process"));
  ExpectOthersName(1, result.err);
}

}  // namespace
}  // namespace ringtail
