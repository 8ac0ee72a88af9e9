// One rank that continues the overlapped rounds of two at their best checkpoint: it merges the round
// that travelled, which was never evaluated.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/storage/checkpoint.h"
#include "core/storage/file.h"
#include "tests/apps/trainer/local/rounds_job.h"

namespace ringtail {
namespace {

class ResumedOnOneRankTest : public LocalRoundsTest {
 protected:
  // Two ranks that end at their first evaluation, which is the best.
  ResumedOnOneRankTest() {
    WriteConfig({"dist.local.period=3", "optim.ema_decay=0"});  // an average would hide the round
    RunJob("run", 2, kUntil);
    best_ = Bytes("run", "checkpoints/best.safetensors");
    files_ = Checkpoints("run");
  }
  std::vector<std::byte> Bytes(const std::string& run, const std::string& file) const {
    return ReadFileBytes(Path(run + "/" + file), int64_t{1} << 30).value();
  }
  std::vector<std::string> Checkpoints(const std::string& run) const {
    return ListFolder(Path(run + "/checkpoints")).value();
  }
  // On one rank, in `run`, which is killed in its first step.
  void TakeAStep(const std::string& run) const {
    const int64_t step = LoadNewestCheckpoint(Path("run"))->step;
    const std::string rank_main = RT_BINARY_DIR "/tests/apps_training_rank_main";
    const ProcessResult result =
        RunProcess(Launch(1, {rank_main, Path("config.textproto"), Path(run), "kill", "0",
                              std::to_string(step + 1), Path("run")}));
    EXPECT_EQ(result.exit_code, 128 + 9) << result.err;
  }

  const std::vector<std::string> kUntil = {"train.until_accuracy=0.001"};
  std::vector<std::byte> best_;
  std::vector<std::string> files_;  // with the parts of both ranks
};

TEST_F(ResumedOnOneRankTest, TheBestCheckpointStays) {
  ASSERT_EQ(files_.size(), 4U) << "step, two parts, best";
  TakeAStep("run");
  EXPECT_EQ(Checkpoints("run"), files_);
  EXPECT_EQ(Bytes("run", "checkpoints/best.safetensors"), best_);
}

TEST_F(ResumedOnOneRankTest, ItIsNamedIfTheRunWasKilledBefore) {
  std::filesystem::remove(BestCheckpointPath(Path("run")));
  TakeAStep("run");
  EXPECT_EQ(Checkpoints("run"), files_);
  EXPECT_EQ(Bytes("run", "checkpoints/best.safetensors"), best_);
}

// With its parts, so that two ranks can continue there.
TEST_F(ResumedOnOneRankTest, AnotherFolderHasItToo) {
  TakeAStep("other");
  EXPECT_EQ(Checkpoints("other"), files_);
  EXPECT_EQ(Bytes("other", "checkpoints/best.safetensors"), best_);
  std::filesystem::remove_all(Path("run"));
  RunJob("other", 2, {}, {"--resume"});
  EXPECT_EQ(Lines("other", "evaluation").back()["epoch"], 4);
}

// It has reached its accuracy, and no step follows.
TEST_F(ResumedOnOneRankTest, TheFinalNetworkIsThatOfTwoRanks) {
  const auto final = Final("run");
  RunJob("run", 1, kUntil, {"--resume", "--local-batch", "4"});
  EXPECT_EQ(Final("run"), final);
  EXPECT_EQ(Checkpoints("run"), files_);
  EXPECT_EQ(Bytes("run", "checkpoints/best.safetensors"), best_);
}

}  // namespace
}  // namespace ringtail
