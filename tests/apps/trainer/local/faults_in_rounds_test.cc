// Ranks that are lost, or have a NaN, in the middle of a round of local steps: they are named as in steps
// that all ranks make together, and the run continues from the end of a round.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "apps/exit_code.h"
#include "core/storage/checkpoint.h"
#include "tests/apps/trainer/local/rounds_job.h"

namespace ringtail {
namespace {

using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;

// A rank that is lost after step 10, in rounds of 3 steps.
struct LostRank {
  std::string name, fault;
  int rank = 0;
  std::vector<std::string> rounds;
};
void PrintTo(const LostRank& lost, std::ostream* out) { *out << lost.name; }

class LostRankTest : public LocalRoundsTest, public testing::WithParamInterface<LostRank> {};

// What the survivors leave behind is common, with the bits of the run left alone at the end of a round.
// What each rank had of its own since then is lost, and the run continues without it.
TEST_P(LostRankTest, IsNamedByAllAndAnyNumberOfRanksContinues) {
  const LostRank& lost = GetParam();
  std::vector<std::string> sets = lost.rounds;
  sets.emplace_back("dist.local.period=3");
  WriteConfig(sets);
  RunJob("alone", 3, {"train.checkpoint_every_steps=3"});
  sets.emplace_back("dist.hang_timeout_s=2");
  WriteConfig(sets);
  const ProcessResult result = RunWithFault(3, "run", lost.fault, lost.rank, 10);
  ExpectOthersName(lost.rank, 3, result);
  if (lost.fault == "kill") {
    EXPECT_EQ(result.exit_code, kExitSignalBase + SIGKILL) << result.err;
    EXPECT_THAT(result.err, HasSubstr("ended by SIGKILL: the first to fail"));
  } else {
    EXPECT_EQ(result.exit_code, kExitSignalBase + SIGTERM) << "of the launcher" << result.err;
  }
  EXPECT_THAT(result.err, HasSubstr(fmt::format("rank {} (localhost, process", lost.rank)));

  const auto left = LoadNewestCheckpoint(Path("run"));
  ASSERT_TRUE(left.ok()) << left.status().ToString();
  if (lost.rank == 0) {
    EXPECT_EQ(left->step, 6) << "of the evaluation: no other rank writes";
  } else {
    EXPECT_THAT(left->step, AnyOf(6, 9, 12)) << "others may be a round behind, or at its end";
  }
  const auto common = ReadTensors(left->path);
  const auto expected =
      ReadTensors(Path(fmt::format("alone/checkpoints/step-{:08}.safetensors", left->step)));
  for (const auto& [name, values] : common) {
    if (name.starts_with("optimizer.")) continue;  // rank 0's own
    EXPECT_EQ(values, expected.at(name)) << name << " after step " << left->step;
  }
  for (const auto& [name, values] : expected) {
    if (name.starts_with("local.outer.")) {
      EXPECT_TRUE(common.contains(name)) << name;
    }
  }
  for (const auto& [name, values] : Final("alone")) EXPECT_TRUE(common.contains(name)) << name;

  for (const int ranks : {1, 2, 3}) {
    const std::string run = fmt::format("on{}", ranks);
    RunJob(run, ranks, {"dist.hang_timeout_s=10"},
           {"--resume", Path("run"), "--local-batch", std::to_string(6 / ranks)});
    const auto last = Lines(run, "evaluation").back();
    EXPECT_EQ(last["step"], 24);
    EXPECT_LT(last["loss"], 1);
  }
  // Every rank had written its part of that checkpoint.
  if (lost.rank == 0) {
    EXPECT_EQ(Final("on3"), Final("alone"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, LostRankTest,
                         testing::Values(LostRank{"KillOf1Compressed", "kill", 1, kCompressed},
                                         LostRank{"KillOf0Overlapped", "kill", 0, kOverlapped},
                                         LostRank{"KillOf2Blocking", "kill", 2, kBlocking},
                                         LostRank{"StopOf2Overlapped", "stop", 2, kOverlapped},
                                         LostRank{"StopOf0Blocking", "stop", 0, kBlocking}),
                         [](const auto& info) { return info.param.name; });

// The others would take 3 s to the end of their round, and a process whose world has ended lives for 2 s
// unless it does something for it (apps/session/last_word.h).
TEST_F(LocalRoundsTest, SurvivorsOfALongRoundWriteTheirCheckpoint) {
  WriteConfig(
      {"dist.local.period=12", "dist.local.overlap=false", "train.evaluate_every_epochs=4"});
  const ProcessResult result = RunWithFault(3, "run", "kill_among_slow", 1, 14);
  ExpectOthersName(1, 3, result);
  const auto left = LoadNewestCheckpoint(Path("run"));
  ASSERT_TRUE(left.ok()) << left.status().ToString() << result.err;
  EXPECT_EQ(left->step, 12);
}

// A round that is waited for ends with step 9, in which all hear of it; one that travels is merged
// at the end of the next.
struct NanRound {
  std::string name;
  std::vector<std::string> rounds;
  int64_t heard_at = 0;
};
void PrintTo(const NanRound& round, std::ostream* out) { *out << round.name; }

class NanRoundTest : public LocalRoundsTest, public testing::WithParamInterface<NanRound> {};

TEST_P(NanRoundTest, OneRanksNanIsNamedByAll) {
  WriteConfig(GetParam().rounds);
  const ProcessResult result = RunWithFault(3, "run", "nan", 2, 7);
  EXPECT_EQ(result.exit_code, 3) << result.err;
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(result.out,
                ContainsRegex(fmt::format("\\[{}\\] at step {} rank 2 .*'fc.weight' has a NaN",
                                          rank, GetParam().heard_at)));
  }
}

TEST_P(NanRoundTest, StaysOutOfTheCommonWeights) {
  std::vector<std::string> sets = GetParam().rounds;
  sets.emplace_back("train.on_nan=SKIP");
  WriteConfig(sets);
  const ProcessResult result = RunWithFault(3, "run", "nan", 2, 7);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err,
              ContainsRegex(fmt::format("up to step {}, .* left out: rank 2 .*'fc.weight'",
                                        GetParam().heard_at)));
  EXPECT_EQ(Lines("run", "evaluation").back()["step"], 24);
}

INSTANTIATE_TEST_SUITE_P(All, NanRoundTest,
                         testing::Values(NanRound{"Blocking", kBlocking, 9},
                                         NanRound{"Overlapped", kOverlapped, 12},
                                         NanRound{"Compressed", kCompressed, 10}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ringtail
