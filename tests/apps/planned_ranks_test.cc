// Runs that follow a plan (dist.plan: AUTO), as people start them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "apps/exit_code.h"
#include "core/config/text_config.h"
#include "core/storage/checkpoint.h"
#include "tests/apps/job.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class PlannedRanksTest : public testing::Test {
 protected:
  ProcessResult Train(const std::string& run, int ranks, const std::vector<std::string>& sets,
                      const std::vector<std::string>& more = {}) const {
    const std::string config = Path(run + ".textproto");
    std::ofstream(config) << PrintTextConfig(
        TinyConfig({"train.batch=4", "dist.algorithm=\"ring\""}).config);
    std::vector<std::string> arguments = {"train",      "--config", config,   "--data",
                                          TinyImages(), "--output", Path(run)};
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProcess(Launch(ranks, DogsVsCats(arguments)));
  }
  std::string Path(const std::string& name) const { return folder_.File(name); }
  std::map<std::string, std::vector<float>> Final(const std::string& run) const {
    return ReadTensors(Path(run + "/final.safetensors"));
  }

  const TempDir folder_;
};

constexpr char kTwoOfThree[] = "dist.planned={rank: [0, 2] world: 3 why: \"as told\"}";

TEST_F(PlannedRanksTest, RanksThatAreIdleChangeNothing) {
  const ProcessResult planned = Train("planned", 3, {"dist.plan=AUTO", kTwoOfThree});
  ASSERT_EQ(planned.exit_code, 0) << planned.out << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("plan: as told"));
  EXPECT_THAT(planned.out, HasSubstr("2 ranks on 1 host"));
  const ProcessResult two = Train("two", 2, {});
  ASSERT_EQ(two.exit_code, 0) << two.out << two.err;
  EXPECT_EQ(Final("planned"), Final("two"));
}

// Rank 0 tells the idle ones how the run has ended.
TEST_F(PlannedRanksTest, IdleRanksEndAsTheOthersDo) {
  const ProcessResult result =
      Train("nan", 3, {"dist.plan=AUTO", kTwoOfThree, "optim.learning_rate=1e30"});
  EXPECT_EQ(result.exit_code, kExitNotFinite) << result.out << result.err;
  EXPECT_THAT(result.err, Not(HasSubstr("rank 1 exited with 0")));
}

// Nothing that a lone trainer does would ask for it: the monitor tells.
TEST_F(PlannedRanksTest, ALoneTrainerHearsThatAnIdleRankIsLost) {
  const std::string config = Path("lone.textproto");
  std::ofstream(config) << PrintTextConfig(
      TinyConfig({"train.batch=4", "train.epochs=100000", "dist.plan=AUTO",
                  "dist.planned={rank: [0] world: 2}"})
          .config);
  const std::string until_it_trains = fmt::format(
      "[ $RANK = 0 ] || (until [ -s {}/metrics.jsonl ]; do sleep 0.05; done; kill -9 $$) & "
      "exec \"$@\"",
      Path("lone"));
  std::vector<std::string> rank = {"sh", "-c", until_it_trains, "sh"};
  for (const std::string& word : DogsVsCats(
           {"train", "--config", config, "--data", TinyImages(), "--output", Path("lone")})) {
    rank.push_back(word);
  }
  const ProcessResult result = RunProcess(Launch(2, rank));
  EXPECT_THAT(result.err, HasSubstr("lost rank 1")) << result.out;
  EXPECT_THAT(result.err, HasSubstr(fmt::format("rank 0: exited with {}", kExitLostPeer)));
  const auto newest = LoadNewestCheckpoint(Path("lone"));
  ASSERT_TRUE(newest.ok()) << newest.status().message();
  EXPECT_GE(newest->step, 1);
}

// The line that says what was chosen.
std::string PlanOf(const ProcessResult& result) {
  const size_t begin = result.out.find("plan: ");
  if (begin == std::string::npos) return "";
  return result.out.substr(begin, result.out.find('\n', begin) - begin);
}

const std::vector<std::string> kAgain = {"--plan", "auto", "--resume"};

// A scheduler starts a job again with the command that it began with.
TEST_F(PlannedRanksTest, ARunThatContinuesKeepsItsPlan) {
  const ProcessResult first = Train("run", 2, {}, kAgain);
  ASSERT_EQ(first.exit_code, 0) << first.out << first.err;
  EXPECT_THAT(PlanOf(first), HasSubstr("plan: one host, 4 images in a step"));
  const ProcessResult second = Train("run", 2, {}, kAgain);
  ASSERT_EQ(second.exit_code, 0) << second.out << second.err;
  EXPECT_EQ(PlanOf(second), PlanOf(first));
  EXPECT_THAT(second.err, HasSubstr("resumes after step"));
}

// The plan of the checkpoint says so, and the checkpoint has the batches.
TEST_F(PlannedRanksTest, RanksTakeImagesBySpeedAsPlanned) {
  const std::string by_speed = "dist.planned={rank: [0, 1] world: 2 by_speed: true}";
  const std::vector<std::string> half = {by_speed, "optim.constant={}",  // so that the end may move
                                         "train.epochs=1"};
  const ProcessResult first = Train("run", 2, half, {"--plan", "auto"});
  ASSERT_EQ(first.exit_code, 0) << first.out << first.err;
  EXPECT_THAT(first.out, ContainsRegex("batches ., . of 8: .* images/s"));
  const std::vector<std::string> resume = {"train",     "--data",   TinyImages(), "--output",
                                           Path("run"), "--resume", "--set",      "train.epochs=2"};
  const ProcessResult second = RunProcess(Launch(2, DogsVsCats(resume)));
  ASSERT_EQ(second.exit_code, 0) << second.out << second.err;
  EXPECT_THAT(second.out, HasSubstr("of 8: as the run began"));
}

TEST_F(PlannedRanksTest, ARunThatBeganWithoutAPlanContinuesWithout) {
  const ProcessResult alone = Train("run", 1, {}, kAgain);
  ASSERT_EQ(alone.exit_code, 0) << alone.out << alone.err;
  const ProcessResult two = Train("run", 2, {}, kAgain);
  ASSERT_EQ(two.exit_code, 0) << two.out << two.err;
  EXPECT_EQ(PlanOf(two), "");
  EXPECT_THAT(two.err, HasSubstr("chooses at the first step only"));
}

TEST_F(PlannedRanksTest, WhatAPlanChoosesMustNotBeSet) {
  const ProcessResult result = Train("run", 1, {"dist.plan=AUTO", "dist.local.period=4"});
  EXPECT_EQ(result.exit_code, kExitUsage);
  EXPECT_THAT(result.err, HasSubstr("leave out dist.local and dist.compression"));
}

TEST_F(PlannedRanksTest, APlanChoosesTheBatchOfEveryRank) {
  const ProcessResult result = Train("run", 1, {"dist.plan=AUTO"}, {"--local-batch", "4"});
  EXPECT_EQ(result.exit_code, kExitUsage);
  EXPECT_THAT(result.err, HasSubstr("leave out --local-batch"));
}

TEST_F(PlannedRanksTest, APlanChoosesNoServers) {
  const ProcessResult result =
      Train("run", 1, {"dist.plan=AUTO", "dist.asynchronous.rule=ASYNCHRONOUS"});
  EXPECT_EQ(result.exit_code, kExitUsage);
  EXPECT_THAT(result.err, HasSubstr("dist.asynchronous"));
}

TEST_F(PlannedRanksTest, APlanNamesRanksInOrder) {
  for (const char* planned : {"{rank: [1, 2] world: 3}", "{rank: [0, 2, 1] world: 3}",
                              "{rank: [0, 3] world: 3}", "{world: 3}"}) {
    const ProcessResult result =
        Train("run", 1, {"dist.plan=AUTO", std::string("dist.planned=") + planned});
    EXPECT_EQ(result.exit_code, kExitUsage) << planned;
    EXPECT_THAT(result.err, HasSubstr("dist.planned")) << planned;
  }
}

}  // namespace
}  // namespace ringtail
