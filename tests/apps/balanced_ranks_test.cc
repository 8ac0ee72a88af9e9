// Batches in proportion to speeds: the curve equals that of one rank for any speeds; a resumed run
// keeps its batches and so its bits; the measurement does not affect the training. Speeds are
// given, or arbitrary measured ones suffice.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>

#include "tests/apps/job.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kRank[] = RT_BINARY_DIR "/tests/apps_balanced_rank_main";

// 50 steps of 8 images over all ranks, with batch norm over all ranks.
class BalancedRanksTest : public testing::Test {
 protected:
  void WriteConfig(int ranks, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"optim.learning_rate=0.02", "train.epochs=10",
                               "dist.sync_batch_norm=true", "dist.check_every_steps=7",
                               "dist.bucket_kib=2", fmt::format("train.batch={}", 8 / ranks)});
    std::ofstream(Path("config.textproto")) << PrintTextConfig(TinyConfig(more).config);
  }
  std::string Path(const std::string& name) const { return folder_.File(name); }

  // Trains on as many ranks as there are speeds, or as the resumed run has; returns the output of
  // rank 0.
  std::string RunWithSpeeds(const std::string& run, const std::string& speeds, int stop = 0,
                            int began_with = 0) const {
    const auto ranks = static_cast<int>(1 + std::ranges::count(speeds, ','));
    WriteConfig(began_with > 0 ? began_with : ranks);
    const ProcessResult result = RunProcess(
        Launch(ranks, {kRank, Path("config.textproto"), Path(run), speeds, std::to_string(stop)}));
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    return result.out;
  }
  // `flags` are expanded by a shell: $RANK.
  ProcessResult RunProgram(const std::string& run, int ranks, const std::string& flags) const {
    WriteConfig(ranks);
    const std::string script = "exec \"$@\" " + flags;
    std::vector<std::string> program = {"sh", "-c", script, "sh"};
    for (const std::string& argument :
         DogsVsCats({"train", "--config", Path("config.textproto"), "--data", TinyImages(),
                     "--output", Path(run)})) {
      program.push_back(argument);
    }
    ProcessResult result = RunProcess(Launch(ranks, program));
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    return result;
  }

  std::vector<nlohmann::json> Lines(const std::string& run, const std::string& kind) const {
    return ReadMetrics(Path(run + "/metrics.jsonl"), kind);
  }
  std::vector<int64_t> BatchesOfRanks(const nlohmann::json& step) const {
    std::vector<int64_t> batches;
    for (const auto& rank : step["ranks"]) batches.push_back(rank["batch"]);
    return batches;
  }
  void ExpectSameCurve(const std::string& run, const std::string& expected) const {
    ringtail::ExpectSameCurve(Path(run), Path(expected));
  }

  const TempDir folder_;
};

TEST_F(BalancedRanksTest, AnySpeedsGiveTheCurveOfOneRank) {
  RunWithSpeeds("one", "7");
  EXPECT_THAT(RunWithSpeeds("uneven", "50,20,10,1"),
              HasSubstr("batches 4, 2, 1, 1 of 8: in proportion to speeds 50, 20, 10 and 1"));
  EXPECT_THAT(BatchesOfRanks(Lines("uneven", "step").back()), ElementsAre(4, 2, 1, 1));
  ExpectSameCurve("uneven", "one");
  EXPECT_THAT(RunWithSpeeds("even", "7.1,7"), HasSubstr("batches 4, 4 of 8"));
  ExpectSameCurve("even", "one");
}

// The speeds of the resumed run differ, its batches do not.
TEST_F(BalancedRanksTest, AStoppedRunGoesOnToTheSameBits) {
  RunWithSpeeds("alone", "5,2");
  RunWithSpeeds("stopped", "5,2", 13);
  ASSERT_EQ(Lines("stopped", "step").size(), 14U) << "the step in which all ranks hear of it";
  EXPECT_THAT(RunWithSpeeds("stopped", "1,2", 31),
              HasSubstr("batches 6, 2 of 8: as the run began"));
  EXPECT_THAT(RunWithSpeeds("stopped", "1,1"), HasSubstr("batches 6, 2 of 8: as the run began"));
  ASSERT_EQ(Lines("alone", "step").size(), Lines("stopped", "step").size());
  EXPECT_EQ(ReadTensors(Path("stopped/final.safetensors")),
            ReadTensors(Path("alone/final.safetensors")));
}

TEST_F(BalancedRanksTest, AnotherWorldGetsANewDivision) {
  RunWithSpeeds("one", "7");
  RunWithSpeeds("moved", "5,2", 13);
  EXPECT_THAT(RunWithSpeeds("moved", "1,2,1", 31, 2), HasSubstr("batches 2, 4, 2 of 8"));
  EXPECT_EQ(RunWithSpeeds("moved", "3", 0, 2), "[0] \n");
  ExpectSameCurve("moved", "one");
}

// A run with measured speeds equals one with the same division given by hand.
TEST_F(BalancedRanksTest, MeasuringLeavesNoTrace) {
  const ProcessResult measured = RunProgram("measured", 2, "--threads 1 --local-batch auto");
  std::smatch found;
  const std::regex line("batches (\\d), (\\d) of 8: .*images/s.*\\(--local-batch auto\\)");
  ASSERT_TRUE(std::regex_search(measured.out, found, line)) << measured.out;
  const auto steps = Lines("measured", "step");
  ASSERT_EQ(steps.size(), 50U);
  EXPECT_THAT(BatchesOfRanks(steps[0]), ElementsAre(std::stoi(found[1]), std::stoi(found[2])));
  RunProgram("given", 2,
             fmt::format("--threads 1 --local-batch $([ $RANK = 0 ] && echo {} || echo {})",
                         found[1].str(), found[2].str()));
  EXPECT_EQ(ReadTensors(Path("measured/final.safetensors")),
            ReadTensors(Path("given/final.safetensors")));
}

// So that each counts as the same machine as before.
TEST_F(BalancedRanksTest, EveryRankResumesWithItsOwnThreads) {
  RunProgram("run", 2, "--local-batch auto --threads $((RANK + 1))");
  EXPECT_THAT(RunProgram("run", 2, "--local-batch auto --resume").out,
              HasSubstr("as the run began"));
  EXPECT_THAT(RunProgram("run", 2, "--local-batch auto --resume --threads 1").out,
              Not(HasSubstr("as the run began")));
}

TEST_F(BalancedRanksTest, AWrongBatchIsRefused) {
  for (const char* wrong : {"fast", "0", "-3", "2.5", "65537", ""}) {
    const ProcessResult result = RunDogsVsCats({"train", "--local-batch", wrong});
    EXPECT_EQ(result.exit_code, 2) << wrong;
    EXPECT_THAT(result.err, HasSubstr("neither auto nor a number from 1 to 65536")) << wrong;
  }
}

}  // namespace
}  // namespace ringtail
