// Ranks that take steps of their own between exchanges: the same mathematics as the synchronous run
// where they have to be, and the same bits after every interruption.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <numeric>

#include "apps/trainer/local/local_period.h"
#include "core/storage/checkpoint.h"
#include "tests/apps/signalled_program.h"
#include "tests/apps/trainer/local/rounds_job.h"

namespace ringtail {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

void ExpectNear(const std::map<std::string, std::vector<float>>& actual,
                const std::map<std::string, std::vector<float>>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, values] : expected) {
    const std::vector<float>& same = actual.at(name);
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(same[i], values[i], tolerance * (1 + std::fabs(values[i]))) << name << " " << i;
    }
  }
}

// The mean of the ranks' weights after one step each is the synchronous step, as long as the update
// is linear in the gradient: SGD without clipping. Momentum is linear, too.
TEST_F(LocalRoundsTest, OneStepAndTheMeanIsTheSynchronousRun) {
  for (const char* momentum : {"0", "0.9"}) {
    WriteConfig({"optim.clip_norm=0", "optim.sgd.nesterov=false",
                 fmt::format("optim.sgd.momentum={}", momentum)});
    RunJob("synchronous", 3, {});
    RunJob("local", 3, {"dist.local.period=1", "dist.local.overlap=false"});
    ExpectNear(Final("local"), Final("synchronous"), 2e-4);
    EXPECT_EQ(Lines("local", "round").size(), Lines("local", "step").size());
    std::filesystem::remove_all(Path("local"));
    std::filesystem::remove_all(Path("synchronous"));
  }
}

TEST_F(LocalRoundsTest, TheMeanOfOneRankIsTheRunAlone) {
  RunJob("alone", 1, {});
  RunJob("local", 1, kBlocking);
  EXPECT_EQ(Final("local"), Final("alone"));
}

TEST_F(LocalRoundsTest, OuterMomentumActsOnOneRank) {
  RunJob("alone", 1, {});
  RunJob("local", 1, kOverlapped);
  EXPECT_NE(Final("local"), Final("alone"));
}

// It has no part of its own to lose, and nothing travels.
TEST_F(LocalRoundsTest, OneRankSaysWhatItDoes) {
  WriteConfig({"train.checkpoint_every_steps=9"});
  RunJob("local", 1, kOverlapped);
  const ProcessResult resumed = RunProcess(
      Launch(1, Train("resumed", kOverlapped,
                      {"--resume", Path("local/checkpoints/step-00000018.safetensors")})));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("local rounds: 3 steps between exchanges; outer rate 0.7"));
  EXPECT_THAT(resumed.err, Not(HasSubstr("is lost")));
  EXPECT_EQ(Final("resumed"), Final("local"));
  // Means of one rank are no rounds, also after those of several.
  RunJob("three", 3, kBlocking);
  const ProcessResult alone =
      RunProcess(Launch(1, Train("alone", kBlocking,
                                 {"--resume", Path("three/checkpoints/step-00000018.safetensors"),
                                  "--local-batch", "6"})));
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_THAT(alone.err, Not(HasSubstr("local rounds:")));
}

TEST_F(LocalRoundsTest, RoundsEndWhereTheImageSizeChangesAndAtTheEnd) {
  RunJob("run", 3, {"dist.local.period=4"});
  int64_t images = 0;
  for (const auto& round : Lines("run", "round")) {
    images += round["batch"].get<int64_t>();
    EXPECT_GT(round["comm_bytes"], 0);
  }
  // 6 steps an epoch; the image size changes after two.
  EXPECT_EQ(LocalSteps("run"), (std::vector<int64_t>{4, 4, 4, 4, 4, 4}));
  EXPECT_EQ(images, 24 * 6);
  RunJob("other", 3, {"dist.local.period=5"});
  EXPECT_EQ(LocalSteps("other"), (std::vector<int64_t>{5, 5, 2, 5, 5, 2}));
}

// (alpha / rate)^2 = 4 steps, and 16 from epoch 2 on, of which the run ends after 12.
TEST_F(LocalRoundsTest, RoundsGrowLongerAsTheRateFalls) {
  RunJob(
      "run", 3,
      {"dist.local.period=2", "dist.local.period_rule=QUADRATIC", "dist.local.quadratic_alpha=0.1",
       "optim.learning_rate=0.05", "optim.step.every_epochs=2", "optim.step.gamma=0.5"});
  EXPECT_EQ(LocalSteps("run"), (std::vector<int64_t>{4, 4, 4, 12}));
}

// How many steps hide an exchange is measured; all ranks take as many.
TEST_F(LocalRoundsTest, RanksAgreeOnWhatTheyMeasured) {
  RunJob("run", 3, {"dist.local.period_rule=AUTO", "dist.check_every_steps=1"});
  const std::vector<int64_t> steps = LocalSteps("run");
  EXPECT_EQ(steps.front(), LocalPeriod::kFirstAuto);
  EXPECT_EQ(std::accumulate(steps.begin(), steps.end(), int64_t{0}), 24);
}

// 6 steps of one batch of all ranks, then 9 of two.
TEST_F(LocalRoundsTest, RoundsEndWhereTheBatchGrows) {
  RunJob("run", 3,
         {"dist.local.period=4", "optim.batch_growth.max_batch=12", "optim.step.every_epochs=1",
          "optim.step.gamma=0.5", "train.phase="});
  EXPECT_EQ(LocalSteps("run"), (std::vector<int64_t>{4, 2, 4, 4, 1}));
  const auto steps = Lines("run", "step");
  EXPECT_EQ(steps.front()["batch"], 2) << "of this rank";
  EXPECT_EQ(steps.back()["batch"], 4);
  int64_t images = 0;
  for (const auto& round : Lines("run", "round")) images += round["batch"].get<int64_t>();
  EXPECT_EQ(images, 24 * 6);
}

TEST_F(LocalRoundsTest, ExchangesLessThanTheSynchronousRun) {
  RunJob("synchronous", 2, {});
  RunJob("local", 2, {"dist.local.period=6"});
  const auto bytes = [&](const std::string& run, const std::string& kind) {
    int64_t sum = 0;
    for (const auto& line : Lines(run, kind)) sum += line["comm_bytes"].get<int64_t>();
    return sum;
  };
  EXPECT_LT(bytes("local", "round"), bytes("synchronous", "step") / 4);
  EXPECT_EQ(bytes("local", "step"), 0);
}

TEST_F(LocalRoundsTest, DenseUntilAnEpoch) {
  RunJob("run", 3, {"dist.local.period=3", "dist.local.start_epoch=2"});
  const auto rounds = Lines("run", "round");
  ASSERT_FALSE(rounds.empty());
  EXPECT_GT(rounds.front()["step"], 12);
  EXPECT_EQ(rounds.back()["step"], 24);
  const auto steps = Lines("run", "step");
  EXPECT_EQ(steps.front()["batch"], 6) << "of all ranks";
  EXPECT_EQ(steps.back()["batch"], 2) << "of this rank";
}

class ResumedTest : public LocalRoundsTest,
                    public testing::WithParamInterface<std::vector<std::string>> {};

// From every checkpoint: at evaluations, and where a signal stopped the run.
TEST_P(ResumedTest, EndsWithTheBitsOfTheRunLeftAlone) {
  RunJob("alone", 3, GetParam());
  std::vector<std::string> checkpoints;
  for (const auto& entry : std::filesystem::directory_iterator(Path("alone/checkpoints"))) {
    const std::string name = entry.path().filename();  // parts have longer ones
    if (name.size() == std::string_view("step-00000012.safetensors").size()) {
      checkpoints.push_back(entry.path());
    }
  }
  ASSERT_GE(checkpoints.size(), 3U);
  for (const std::string& checkpoint : checkpoints) {
    RunJob("resumed", 3, GetParam(), {"--resume", checkpoint});
    EXPECT_EQ(Final("resumed"), Final("alone")) << checkpoint;
    std::filesystem::remove_all(Path("resumed"));
  }
}

// Shares of 4, 3 and 3 images in rounds of 2 steps: an equal share of a round is 20 / 3.
TEST_P(ResumedTest, UnequalSharesKeepTheirBits) {
  std::vector<std::string> sets = GetParam();
  sets.emplace_back("dist.local.period=2");
  const auto train = [&](const std::string& run, const std::vector<std::string>& more) {
    std::vector<std::string> shares = {"sh", "-c", "exec \"$@\" --local-batch $((3 + (RANK == 0)))",
                                       "sh"};
    const std::vector<std::string> program = Train(run, sets, more);
    shares.insert(shares.end(), program.begin(), program.end());
    const ProcessResult result = RunProcess(Launch(3, shares));
    ASSERT_EQ(result.exit_code, 0) << result.err;
  };
  train("alone", {});
  ASSERT_EQ(Lines("alone", "round").front()["batch"], 20);
  const auto evaluation = Lines("alone", "evaluation").front();
  train("resumed", {"--resume", Path(fmt::format("alone/checkpoints/step-{:08}.safetensors",
                                                 evaluation["step"].get<int64_t>()))});
  EXPECT_EQ(Final("resumed"), Final("alone"));
}

TEST_P(ResumedTest, AfterASignalTheBitsAreThose) {
  RunJob("alone", 2, GetParam());
  ChildProcess child(Launch(2, Train("stopped", GetParam())));
  ASSERT_TRUE(WaitForSteps(&child, 1));
  child.Signal(SIGTERM);
  const ProcessResult stopped = child.Wait();
  if (stopped.exit_code != 0) {  // it may have come to its end
    EXPECT_EQ(stopped.exit_code, 128 + SIGTERM) << stopped.err;
    RunJob("stopped", 2, GetParam(), {"--resume"});
  }
  EXPECT_EQ(Final("stopped"), Final("alone"));
}

// Where ranks hear of it, which may be long after the signal.
TEST_F(LocalRoundsTest, ASignalStopsTheRunAtTheEndOfARoundAsTheNoticeSays) {
  constexpr int64_t kLong = 300;
  for (const bool overlaps : {false, true}) {
    const std::string run = overlaps ? "overlapped" : "blocking";
    ChildProcess child(Launch(
        2, Train(run, {"train.phase=", "train.epochs=100000", "train.log_every_steps=1",
                       fmt::format("dist.local.period={}", kLong), "dist.local.min_cosine=-1",
                       fmt::format("dist.local.overlap={}", overlaps)})));
    ASSERT_TRUE(WaitForSteps(&child, 1));
    child.Signal(SIGTERM);
    const ProcessResult stopped = child.Wait();
    EXPECT_EQ(stopped.exit_code, 128 + SIGTERM) << stopped.err;
    EXPECT_THAT(stopped.err,
                HasSubstr(fmt::format("SIGTERM: stopping at the end of {} round; again to stop now",
                                      overlaps ? "the next" : "this")));
    EXPECT_THAT(stopped.err, HasSubstr("rounds have up to 300 steps (dist.local.period), more than "
                                       "the 10 from one evaluation to the next"));
    const auto newest = LoadNewestCheckpoint(Path(run));
    ASSERT_TRUE(newest.ok()) << newest.status().message();
    EXPECT_GE(newest->step, overlaps ? 2 * kLong : kLong);
    EXPECT_EQ(newest->step % kLong, 0);
  }
}

TEST_P(ResumedTest, AnyNumberOfRanksContinues) {
  std::vector<std::string> half = GetParam();
  half.emplace_back("optim.constant={}");  // so that the end may move
  std::vector<std::string> whole = half;
  half.emplace_back("train.epochs=2");
  RunJob("run", 3, half);
  for (const int ranks : {1, 2, 6}) {
    const std::string run = fmt::format("on{}", ranks);
    RunJob(run, ranks, whole,
           {"--resume", Path("run"), "--local-batch", std::to_string(6 / ranks)});
    const auto last = Lines(run, "evaluation").back();
    EXPECT_EQ(last["epoch"], 4);
    EXPECT_LT(last["loss"], 2);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ResumedTest, testing::Values(kBlocking, kOverlapped, kCompressed));

// What ranks have in common is compared where a round ends; a rank's own weights are its own.
TEST_F(LocalRoundsTest, AWrongBitOfWhatIsCommonIsFound) {
  std::vector<std::string> sets = kBlocking;
  sets.emplace_back("dist.check_every_steps=3");
  WriteConfig(sets);
  const ProcessResult result = RunWithFault(3, "run", "flip_average", 1, 9);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, ContainsRegex("averaged weights of rank 1 .*all ranks go back to step"));
}

// `program` with the instruction set of this machine on rank 0, and with SSE4.1 on the others.
std::vector<std::string> WithOtherInstructionSets(const std::vector<std::string>& program) {
  std::vector<std::string> limited = {
      "sh", "-c", "[ $RANK = 0 ] || export DNNL_MAX_CPU_ISA=SSE41; exec \"$@\"", "sh"};
  limited.insert(limited.end(), program.begin(), program.end());
  return limited;
}

// Their steps differ in the last bits; what they have in common after a round does not.
TEST_F(LocalRoundsTest, RanksOfDifferentInstructionSetsTrainInRounds) {
  for (const auto& rounds : {kBlocking, kOverlapped}) {
    WriteConfig(rounds);
    const ProcessResult result =
        RunProcess(Launch(2, WithOtherInstructionSets(Train("run", {"dist.check_every_steps=3"}))));
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_THAT(result.err, Not(HasSubstr("go back to step")));
    EXPECT_FALSE(Lines("run", "round").empty());
    EXPECT_FALSE(Final("run").empty());
    std::filesystem::remove_all(Path("run"));
  }
}

// Nor if steps that all ranks make together come first.
TEST_F(LocalRoundsTest, RanksOfDifferentInstructionSetsMakeNoStepTogether) {
  const std::vector<std::vector<std::string>> together = {
      {}, {"dist.local.period=3", "dist.local.start_epoch=2"}};
  for (const auto& sets : together) {
    const ProcessResult result =
        RunProcess(Launch(2, WithOtherInstructionSets(Train("run", sets))));
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.err,
                ContainsRegex("rank 0 \\(.* and rank 1 \\(.* disagree about instruction "
                              "set: rank 0 has [a-z0-9_]+, rank 1 has baseline"));
    EXPECT_TRUE(Lines("run", "step").empty());
  }
}

}  // namespace
}  // namespace ringtail
