// One bit of the state of one rank changes: no file ever contains it. With a majority the run goes
// back by itself and ends with the bits of an undisturbed one; otherwise it reports that the wrong
// rank cannot be told.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "apps/exit_code.h"
#include "core/storage/checkpoint.h"
#include "tests/apps/job.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr int kFlipStep = 12;
// Five steps are an epoch of three ranks, eight of two.
constexpr int kLastAgreed = 10, kLastAgreedOfTwo = 8;

class WrongWeightsTest : public testing::Test {
 protected:
  WrongWeightsTest() { WriteConfig({}); }

  void WriteConfig(std::vector<std::string> overrides) const {
    overrides.insert(
        overrides.begin(),
        // (Separate runs of three ranks: "auto" may add up in another order.)
        {"train.batch=2", "train.epochs=4", "dist.algorithm=\"ring\"", "dist.check_every_steps=7",
         "dist.hang_timeout_s=60", "data.split.validation_fraction=0.34"});
    std::ofstream(Path("config.textproto")) << PrintTextConfig(TinyConfig(overrides).config);
  }
  std::string Path(const std::string& name) const { return folder_.File(name); }
  std::string Mark(const std::string& run) const { return Path(run + "/checkpoints/failed-check"); }

  ProcessResult Run(int ranks, const std::string& fault, int rank, const std::string& run,
                    int64_t step = kFlipStep, const std::string& from = "") const {
    const std::string rank_main = RT_BINARY_DIR "/tests/apps_training_rank_main";
    std::vector<std::string> program = {rank_main, Path("config.textproto"), Path(run),
                                        fault,     std::to_string(rank),     std::to_string(step)};
    if (!from.empty()) program.push_back(Path(from));
    return RunProcess(Launch(ranks, program));
  }
  std::map<std::string, std::vector<float>> Final(const std::string& run) const {
    return ReadTensors(Path(run + "/final.safetensors"));
  }
  std::vector<double> Losses(const std::string& run) const {
    std::vector<double> losses;
    for (const auto& line : ReadMetrics(Path(run + "/metrics.jsonl"), "step")) {
      losses.push_back(line["loss"]);
    }
    return losses;
  }
  // No file is of a step after the flip.
  void ExpectNothingWrongIsKept(const std::string& run, int64_t last = kLastAgreed) const {
    const auto newest = LoadNewestCheckpoint(Path(run));
    ASSERT_TRUE(newest.ok()) << newest.status().ToString();
    EXPECT_EQ(newest->step, last);
    const auto best = LoadCheckpoint(BestCheckpointPath(Path(run)));
    ASSERT_TRUE(best.ok()) << best.status().ToString();
    EXPECT_LE(best->step, last);
    EXPECT_FALSE(std::filesystem::exists(Path(run + "/final.safetensors")));
    EXPECT_TRUE(std::filesystem::exists(Mark(run)));
  }

  const TempDir folder_;
};

struct Flip {
  const char* fault;
  int rank;
  const char* what;
};
void PrintTo(const Flip& flip, std::ostream* out) { *out << flip.fault << " on " << flip.rank; }

class HealingTest : public WrongWeightsTest, public testing::WithParamInterface<Flip> {};

TEST_P(HealingTest, TheRunGoesBackAndEndsWithTheBitsOfAnUndisturbedOne) {
  ASSERT_EQ(Run(3, "none", 0, "undisturbed").exit_code, 0);
  const ProcessResult result = Run(3, GetParam().fault, GetParam().rank, "flipped");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err,
              ContainsRegex(fmt::format(
                  "after step 14 the .*{}.* of rank {} \\(.*all ranks go back to step 10",
                  GetParam().what, GetParam().rank)));
  EXPECT_EQ(Final("flipped"), Final("undisturbed"));
  EXPECT_EQ(Losses("flipped"), Losses("undisturbed"));
  EXPECT_FALSE(std::filesystem::exists(Mark("flipped"))) << "the last checkpoint was agreed on";
  const auto newest = LoadNewestCheckpoint(Path("flipped"));
  ASSERT_TRUE(newest.ok());
  EXPECT_EQ(newest->agreed_ranks(), 3);
}

INSTANTIATE_TEST_SUITE_P(All, HealingTest,
                         testing::Values(Flip{"flip", 0, "weights"}, Flip{"flip", 1, "weights"},
                                         Flip{"flip_momentum", 2, "optimizer state"},
                                         Flip{"flip_average", 0, "averaged weights"}),
                         [](const auto& info) {
                           return fmt::format("{}_{}", info.param.fault, info.param.rank);
                         });

// Residuals go back, too: each rank reads its own part.
TEST_F(WrongWeightsTest, WithErrorFeedbackTheBitsAreTheSameToo) {
  WriteConfig({"dist.compression.scheme.one_bit={}", "dist.compression.min_elements=100",
               "dist.compression.fall_back=false", "dist.compression.route=GATHER"});
  ASSERT_EQ(Run(3, "none", 0, "undisturbed").exit_code, 0);
  const ProcessResult result = Run(3, "flip", 1, "flipped");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("all ranks go back to step 10"));
  EXPECT_TRUE(LoadNewestCheckpoint(Path("flipped"))->parts);
  EXPECT_EQ(Final("flipped"), Final("undisturbed"));
  EXPECT_EQ(Losses("flipped"), Losses("undisturbed"));
}

// A resumed run without an agreed checkpoint of its own goes back to that from which it was
// resumed.
class ResumedHealingTest : public WrongWeightsTest {
 protected:
  static constexpr int kFlip = 17;  // of 20 steps; after the last the ranks compare
  static constexpr char kCheckpoint[] = "/checkpoints/step-00000015.safetensors";
  void SetUp() override {
    WriteConfig({"dist.compression.scheme.one_bit={}", "dist.compression.min_elements=100",
                 "dist.compression.fall_back=false", "dist.compression.route=GATHER"});
    ASSERT_EQ(Run(3, "none", 0, "undisturbed").exit_code, 0);
    ASSERT_TRUE(std::filesystem::exists(Path("undisturbed") + kCheckpoint));
  }
  // A run that ended after 15 steps.
  void MakeStopped(const std::string& run) const {
    std::filesystem::copy(Path("undisturbed"), Path(run), std::filesystem::copy_options::recursive);
    for (const char* later : {"/checkpoints/step-00000020.safetensors", "/final.safetensors"}) {
      ASSERT_TRUE(std::filesystem::remove(Path(run) + later));
    }
  }
  void ExpectHealed(const ProcessResult& result, const std::string& run) const {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("all ranks go back to step 15"));
    EXPECT_EQ(Final(run), Final("undisturbed"));
  }
};

TEST_F(ResumedHealingTest, InItsOwnFolder) {
  MakeStopped("run");
  ExpectHealed(Run(3, "flip", 1, "run", kFlip, "run"), "run");
  EXPECT_EQ(Losses("run"), Losses("undisturbed"));
}

TEST_F(ResumedHealingTest, FromTheCheckpointOfAnotherFolder) {
  ExpectHealed(Run(3, "flip", 0, "run", kFlip, std::string("undisturbed") + kCheckpoint), "run");
}

TEST_F(ResumedHealingTest, AfterItsFolderWasRenamed) {
  MakeStopped("run");
  ExpectHealed(Run(3, "flip_moved", 2, "run", kFlip, "run"), "run.moved");
}

TEST_F(WrongWeightsTest, OfTwoRanksTheWrongOneCannotBeTold) {
  const ProcessResult result = Run(2, "flip", 0, "run");
  EXPECT_EQ(result.exit_code, kExitDisagree) << result.err;
  EXPECT_THAT(result.err, ContainsRegex("in step 14: the weights.* of rank 0 \\(.* and of rank 1 "
                                        "\\(.* differ, and which of them is wrong cannot be told"));
  EXPECT_THAT(result.err, HasSubstr("the ranks hold different bits, and which of them is wrong"));
  EXPECT_THAT(result.err, Not(HasSubstr("the first to fail")));
  ExpectNothingWrongIsKept("run", kLastAgreedOfTwo);
}

// The verdict does not name the rank that ended first.
TEST_F(WrongWeightsTest, StopBlamesTheOddRank) {
  WriteConfig({"dist.on_disagreement=STOP"});
  for (const int rank : {0, 2}) {
    const std::string run = fmt::format("run{}", rank);
    const ProcessResult result = Run(3, "flip", rank, run);
    EXPECT_EQ(result.exit_code, kExitFailure) << result.err;
    EXPECT_THAT(result.err, ContainsRegex(fmt::format("rank {} \\(localhost, process [0-9]+\\) "
                                                      "exited with 1: the first to fail",
                                                      rank)));
    ExpectNothingWrongIsKept(run);
  }
}

TEST_F(WrongWeightsTest, TheSameRankASecondTimeEndsTheRun) {
  const ProcessResult result = Run(3, "flip_again", 1, "run");
  EXPECT_EQ(result.exit_code, kExitFailure) << result.err;
  EXPECT_THAT(result.err, HasSubstr("all ranks go back to step 10"));
  EXPECT_THAT(result.err, ContainsRegex("rank 1 \\(localhost, process [0-9]+\\) exited with 1"));
  ExpectNothingWrongIsKept("run");
}

TEST_F(WrongWeightsTest, BeforeTheFirstCheckpointThereIsNothingToGoBackTo) {
  const ProcessResult result = Run(3, "flip", 1, "run", /*step=*/3);
  EXPECT_EQ(result.exit_code, kExitFailure) << result.err;
  EXPECT_THAT(result.err, HasSubstr("there is no checkpoint yet that all agreed on"));
  EXPECT_EQ(LoadNewestCheckpoint(Path("run")).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace ringtail
