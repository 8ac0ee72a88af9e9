// Runs that follow a plan (dist.plan: AUTO), as people start them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "apps/config/run_config.h"
#include "apps/exit_code.h"
#include "apps/trainer/checkpoint/resume_point.h"
#include "core/config/text_config.h"
#include "core/storage/checkpoint.h"
#include "tests/apps/job.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class PlannedRanksTest : public testing::Test {
 protected:
  ProcessResult Train(const std::string& run, int ranks, const std::vector<std::string>& sets,
                      const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = Arguments(run, sets);
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProcess(Launch(ranks, DogsVsCats(arguments)));
  }
  std::vector<std::string> Arguments(const std::string& run,
                                     const std::vector<std::string>& sets) const {
    const std::string config = Path(run + ".textproto");
    std::ofstream(config) << PrintTextConfig(
        TinyConfig({"train.batch=4", "dist.algorithm=\"ring\""}).config);
    std::vector<std::string> arguments = {"train",      "--config", config,   "--data",
                                          TinyImages(), "--output", Path(run)};
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    return arguments;
  }
  // By the config of the run, to a later end.
  ProcessResult Continue(const std::string& run, int ranks, int epochs,
                         const std::vector<std::string>& more) const {
    std::vector<std::string> resume = {
        "train",   "--data",   TinyImages(), "--output",
        Path(run), "--resume", "--set",      fmt::format("train.epochs={}", epochs)};
    resume.insert(resume.end(), more.begin(), more.end());
    return RunProcess(Launch(ranks, DogsVsCats(resume)));
  }
  // Each rank runs `script` with the program as its arguments.
  static std::vector<std::string> InShell(const std::string& script,
                                          std::vector<std::string> program) {
    program.insert(program.begin(), {"sh", "-c", script, "sh"});
    return program;
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
  const std::string until_it_trains = fmt::format(
      "[ $RANK = 0 ] || (until [ -s {}/metrics.jsonl ]; do sleep 0.05; done; kill -9 $$) & "
      "exec \"$@\"",
      Path("lone"));
  const ProcessResult result = RunProcess(
      Launch(2, InShell(until_it_trains,
                        DogsVsCats(Arguments("lone", {"train.epochs=100000", "dist.plan=AUTO",
                                                      "dist.planned={rank: [0] world: 2}"})))));
  EXPECT_THAT(result.err, HasSubstr("lost rank 1")) << result.out;
  EXPECT_THAT(result.err, HasSubstr(fmt::format("rank 0: exited with {}", kExitLostPeer)));
  const auto newest = LoadNewestCheckpoint(Path("lone"));
  ASSERT_TRUE(newest.ok()) << newest.status().message();
  EXPECT_GE(newest->step, 1);
}

// Whichever rank gets the signal: rank 0 trains alone, or with another one.
TEST_F(PlannedRanksTest, ASignalToAnIdleRankStopsTheOthersInOrder) {
  for (const char* const planned : {"{rank: [0] world: 2}", "{rank: [0, 2] world: 3}"}) {
    SCOPED_TRACE(planned);
    const int ranks = planned[std::string_view(planned).size() - 2] - '0';
    const std::string run = fmt::format("told{}", ranks);
    const std::string once_it_trains = fmt::format(
        "[ $RANK != 1 ] || (until [ -s {}/metrics.jsonl ]; do sleep 0.05; done; kill -TERM $$) & "
        "exec \"$@\"",
        Path(run));
    const ProcessResult result = RunProcess(Launch(
        ranks, InShell(once_it_trains,
                       DogsVsCats(Arguments(run, {"train.epochs=100000", "dist.plan=AUTO",
                                                  std::string("dist.planned=") + planned})))));
    EXPECT_EQ(result.exit_code, kExitSignalBase + SIGTERM) << result.out << result.err;
    EXPECT_THAT(result.err,
                ContainsRegex("rank 1 [^\n]*, which does not train, was told to stop by "
                              "SIGTERM: all ranks do"));
    EXPECT_THAT(result.err, HasSubstr("SIGTERM: stopping after this step; again to stop now"));
    EXPECT_THAT(result.err, HasSubstr("continue with --resume"));
    const auto newest = LoadNewestCheckpoint(Path(run));
    ASSERT_TRUE(newest.ok()) << newest.status().message();
    EXPECT_GE(newest->step, 1);
  }
}

// By their places among those that train.
TEST_F(PlannedRanksTest, EachRankKeepsItsThreadsBesideIdleOnes) {
  const std::vector<std::string> sets = {"dist.plan=AUTO", kTwoOfThree, "optim.constant={}"};
  const auto train = [&](const std::string& epochs, const std::string& flags) {
    std::vector<std::string> all = sets;
    all.push_back("train.epochs=" + epochs);
    const ProcessResult result = RunProcess(
        Launch(3, InShell("exec \"$@\" " + flags, DogsVsCats(Arguments("threads", all)))));
    ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  };
  const auto saved = [&] {
    const auto newest = FindNewestCheckpoint(Path("threads"));
    return newest.ok() ? ReadResumeHead(*newest)->division.threads : std::vector<int64_t>();
  };
  train("1", "--threads $((RANK + 1))");
  EXPECT_THAT(saved(), ElementsAre(1, 3));
  train("2", "--resume");
  EXPECT_THAT(saved(), ElementsAre(1, 3));
  EXPECT_EQ(LoadNewestCheckpoint(Path("threads"))->step, 2 * kTinyStepsPerEpoch);
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

// As a run leaves it that is killed before its first checkpoint: four ranks were to take two of eight
// images each.
constexpr char kOfFour[] =
    "dist.planned={rank: [0, 1, 2, 3] world: 4 why: \"of four\" set: \"train.batch=2\" set: "
    "\"train.accumulation=1\" set: \"dist.compression={ scheme { linear8 { } } }\"}";

TEST_F(PlannedRanksTest, APlanByWhichNothingWasTrainedIsMadeAnewInAnotherWorld) {
  for (const int ranks : {1, 2}) {
    SCOPED_TRACE(ranks);
    const std::string run = fmt::format("killed{}", ranks);
    const std::string config = Path(run + "/config.textproto");
    std::filesystem::create_directory(Path(run));
    std::ofstream(config) << PrintTextConfig(
        TinyConfig({"dist.plan=AUTO", "train.batch=2", kOfFour,
                    "dist.compression={ scheme { linear8 { } } }"})
            .config);
    const std::vector<std::string> resume =
        DogsVsCats({"train", "--data", TinyImages(), "--output", Path(run), "--resume"});
    const ProcessResult result = RunProcess(ranks == 1 ? resume : Launch(ranks, resume));
    ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_THAT(result.err, HasSubstr("made for 4 ranks and nothing was trained by it"));
    EXPECT_THAT(result.err, HasSubstr(ranks == 1 ? "begins without a plan, with 8 images in a step"
                                                 : "is planned anew, with 8 images in a step"));
    EXPECT_THAT(result.out, Not(HasSubstr("of four")));
    const auto now = LoadRunConfig(config, {});
    ASSERT_TRUE(now.ok()) << now.status().message();
    const Planned& plan = now->config.dist().planned();
    EXPECT_EQ(now->config.dist().has_planned(), ranks > 1);
    EXPECT_EQ(std::max(plan.rank_size(), 1) * now->config.train().batch(), 8);
  }
}

TEST_F(PlannedRanksTest, APlanOfAsManyRanksIsFollowedFromTheBeginning) {
  const ProcessResult result =
      Train("run", 2, {"dist.plan=AUTO", "dist.planned={rank: [0, 1] world: 2 why: \"of two\"}"});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(PlanOf(result), "plan: of two");
  EXPECT_THAT(result.err, HasSubstr("the run begins by the plan that its config holds"));
}

// The plan of the checkpoint says so, and the checkpoint has the batches.
TEST_F(PlannedRanksTest, RanksTakeImagesBySpeedAsPlanned) {
  const std::string by_speed = "dist.planned={rank: [0, 1] world: 2 by_speed: true}";
  const std::vector<std::string> half = {by_speed, "optim.constant={}",  // so that the end may move
                                         "train.epochs=1"};
  const ProcessResult first = Train("run", 2, half, {"--plan", "auto"});
  ASSERT_EQ(first.exit_code, 0) << first.out << first.err;
  EXPECT_THAT(first.out, ContainsRegex("batches ., . of 8: .* images/s"));
  for (const std::string plan : {"auto", "config"}) {
    const ProcessResult next = Continue("run", 2, plan == "auto" ? 2 : 3, {"--plan", plan});
    ASSERT_EQ(next.exit_code, 0) << next.out << next.err;
    EXPECT_THAT(next.out, HasSubstr("of 8: as the run began"));
  }
}

TEST_F(PlannedRanksTest, ARunThatBeganWithoutAPlanContinuesWithout) {
  const ProcessResult alone = Train("run", 1, {}, kAgain);
  ASSERT_EQ(alone.exit_code, 0) << alone.out << alone.err;
  const ProcessResult two = Train("run", 2, {}, kAgain);
  ASSERT_EQ(two.exit_code, 0) << two.out << two.err;
  EXPECT_EQ(PlanOf(two), "");
  EXPECT_THAT(two.err, HasSubstr("chooses at the first step only"));
}

// Of one epoch; with this rate the end may move.
const std::vector<std::string> kOneEpoch = {"optim.constant={}", "train.epochs=1"};

std::vector<std::string> With(std::vector<std::string> sets, const std::vector<std::string>& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

// No plan would choose rounds.
TEST_F(PlannedRanksTest, ARunThatBeganByItsConfigIsNotPlannedWhenItContinues) {
  for (const auto& own : {std::vector<std::string>(), {"dist.local.period=2"}}) {
    const std::string run = own.empty() ? "steps" : "rounds";
    const ProcessResult first = Train(run, 2, With(kOneEpoch, own));
    ASSERT_EQ(first.exit_code, 0) << first.out << first.err;
    int epochs = 1;
    for (const int ranks : {2, 3, 1}) {
      SCOPED_TRACE(fmt::format("{} of {} ranks", run, ranks));
      const ProcessResult next = Continue(run, ranks, ++epochs, {"--plan", "auto"});
      ASSERT_EQ(next.exit_code, 0) << next.out << next.err;
      EXPECT_THAT(next.err, HasSubstr("dist.plan: AUTO chooses at the first step only; this run "
                                      "continues as it began"));
      EXPECT_EQ(PlanOf(next), "");
      const auto head = ReadResumeHead(*FindNewestCheckpoint(Path(run)));
      EXPECT_EQ(head->progress.step, epochs * kTinyStepsPerEpoch);
      EXPECT_EQ(head->config.dist().plan(), DistConfig::CONFIG);
      EXPECT_FALSE(head->config.dist().has_planned());
    }
  }
}

TEST_F(PlannedRanksTest, ARunKeepsItsPlanThoughItsConfigIsToDecide) {
  const ProcessResult first = Train("run", 3, With(kOneEpoch, {"dist.plan=AUTO", kTwoOfThree}));
  ASSERT_EQ(first.exit_code, 0) << first.out << first.err;
  int epochs = 1;
  const auto expect_plan = [&](const ProcessResult& next, const std::string& plan) {
    ASSERT_EQ(next.exit_code, 0) << next.out << next.err;
    EXPECT_THAT(next.err, HasSubstr("dist.plan: CONFIG counts at the first step only; this run "
                                    "continues by the plan that it began with"));
    EXPECT_EQ(PlanOf(next), plan);
    const auto head = ReadResumeHead(*FindNewestCheckpoint(Path("run")));
    EXPECT_EQ(head->progress.step, epochs * kTinyStepsPerEpoch);
    EXPECT_EQ(head->config.dist().plan(), DistConfig::AUTO);
    EXPECT_TRUE(head->config.dist().has_planned());
  };
  const std::vector<std::string> by_config = {"--plan", "config"};
  const ProcessResult three = Continue("run", 3, ++epochs, by_config);
  expect_plan(three, "plan: as told");
  EXPECT_THAT(three.out, HasSubstr("2 ranks on 1 host"));
  expect_plan(Continue("run", 2, ++epochs, by_config),
              "plan: made for 3 ranks, all of now 2 train: as told");
  expect_plan(Continue("run", 1, ++epochs, by_config), "");
  // A config that knows of no plan.
  const std::string end = fmt::format("train.epochs={}", ++epochs);
  expect_plan(Train("run", 3, {"optim.constant={}", end}, {"--resume"}), "plan: as told");
  ++epochs;
  expect_plan(Train("run", 1, {"optim.constant={}", "train.epochs=6"}, {"--resume"}), "");
}

TEST_F(PlannedRanksTest, APlanThatIsKeptChoosesTheBatchOfEveryRank) {
  const ProcessResult first = Train("run", 3, With(kOneEpoch, {"dist.plan=AUTO", kTwoOfThree}));
  ASSERT_EQ(first.exit_code, 0) << first.out << first.err;
  const ProcessResult next = Continue("run", 3, 2, {"--plan", "config", "--local-batch", "4"});
  EXPECT_EQ(next.exit_code, kExitUsage);
  EXPECT_THAT(next.err, HasSubstr("leave out --local-batch"));
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
