// The verdict on failures of real processes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <array>

#include "tests/apps/launch/launched.h"

namespace ringtail {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Failure {
  std::string action;
  int exit_code;
  std::string said;
};

// Four ranks, of which rank 2 does `action` and the others notice that it is gone.
ProcessResult RunFour(const std::string& action) {
  const TempDir dir;
  const std::string fifos = MakeFifos(dir, 4);
  return RunProcess(
      Launch({"-n", "4"}, {"2:hold=" + fifos, "2:" + action, "0:lose=" + fifos, "1:lose=" + fifos,
                           "3:lose=" + fifos, "0:exit=75", "1:exit=75", "3:exit=75"}));
}

class FailureTest : public testing::TestWithParam<Failure> {};

TEST_P(FailureTest, IsNamedWithItsOwnCause) {
  const ProcessResult result = RunFour(GetParam().action);
  EXPECT_EQ(result.exit_code, GetParam().exit_code) << result.err;
  EXPECT_THAT(result.err, HasSubstr("ranks 0-1,3: exited with 75 (lost a peer)"));
  const size_t last = result.err.rfind("ringtail_launch: rank 2 (localhost, process ");
  ASSERT_NE(last, std::string::npos) << result.err;
  EXPECT_THAT(result.err.substr(last), HasSubstr(GetParam().said));
}

INSTANTIATE_TEST_SUITE_P(
    AllWaysToFail, FailureTest,
    testing::Values(Failure{"raise=11", 139, "ended by SIGSEGV: the first to fail"},
                    Failure{"raise=7", 135, "ended by SIGBUS"},
                    Failure{"abort", 134, "ended by SIGABRT"},
                    Failure{"throw", 134, "ended by SIGABRT"},
                    Failure{"raise=9", 137, "ended by SIGKILL: the first to fail; its peak memory"},
                    Failure{"exit=1", 1, "exited with 1: the first to fail"},
                    Failure{"_exit=9", 9, "exited with 9"},
                    Failure{"exit=143", 143, "exited with 143 (SIGTERM)"},
                    Failure{"exit=0", 1, "left early: it exited with 0, and rank"},
                    Failure{"_exit=0", 1, "left early"}));

TEST(FailuresTest, AKilledRankIsNamed) {
  const TempDir dir;
  const std::string fifos = MakeFifos(dir, 3);
  ChildProcess launcher(Launch({"-n", "3"}, {"1:hold=" + fifos, "1:pid", "1:pause",
                                             "0:lose=" + fifos, "2:lose=" + fifos, "exit=75"}));
  const auto line = launcher.ReadLine();
  int pid = 0;
  ASSERT_EQ(std::sscanf(line.value_or("").c_str(), "[1] pid %d", &pid), 1);
  kill(pid, SIGKILL);
  const ProcessResult result = launcher.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_THAT(result.err, HasSubstr(fmt::format(
                              "rank 1 (localhost, process {}) ended by SIGKILL: the first", pid)));
}

TEST(FailuresTest, AllIsWell) {
  const ProcessResult result = RunProcess(Launch({"-n", "3"}, {"exit=0"}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
}

TEST(FailuresTest, OthersGetTimeAndThenSigterm) {
  const ProcessResult result =
      RunProcess(Launch({"-n", "2", "--timeout-kill", "2"}, {"1:exit=5", "wait"}));
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_THAT(LinesOf(0, result.out), testing::ElementsAre("got 15"));
  EXPECT_THAT(result.err, HasSubstr("rank 0: exited with 143 (SIGTERM) (after a signal from"));
}

TEST(FailuresTest, ARankThatIgnoresSigtermIsKilled) {
  const ProcessResult result =
      RunProcess(Launch({"-n", "2", "--timeout-kill", "0.1"}, {"1:exit=5", "pause"}));
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_THAT(result.err, HasSubstr("rank 0: ended by SIGKILL (sent by the launcher)"));
}

TEST(FailuresTest, AStoppedRankIsNamed) {
  const TempDir dir;
  const ProcessResult result = RunProcess(Launch(
      {"-n", "3", "--timeout-kill", "0.1"}, {"1:raise=19", "1:pause", "0:exit=75", "2:exit=75"}));
  EXPECT_THAT(result.err, HasSubstr("rank 1 (localhost, process "));
  EXPECT_THAT(result.err, HasSubstr("did not end by itself when others had lost a peer"));
  EXPECT_NE(result.exit_code, 0);
}

TEST(FailuresTest, IfAllLoseAPeerNoneIsBlamed) {
  const ProcessResult result = RunProcess(Launch({"-n", "2"}, {"exit=75"}));
  EXPECT_EQ(result.exit_code, 75);
  EXPECT_THAT(result.err, HasSubstr("was the first to lose a peer; no rank failed by itself"));
}

TEST(FailuresTest, WithNoKillTheOthersContinue) {
  const TempDir dir;
  const std::string fifos = MakeFifos(dir, 3);
  // Ranks 0 and 2 see the end of rank 1, and then do their work.
  const ProcessResult result =
      RunProcess(Launch({"-n", "3", "--no-kill"}, {"1:hold=" + fifos, "1:raise=9", "lose=" + fifos,
                                                   "say=continues", "exit=0"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(LinesOf(0, result.out), testing::ElementsAre("continues"));
  EXPECT_THAT(LinesOf(2, result.out), testing::ElementsAre("continues"));
  EXPECT_THAT(result.err, HasSubstr("rank 1: ended by SIGKILL"));
  EXPECT_THAT(result.err, HasSubstr("ringtail_launch: the job has succeeded without rank 1"));
  EXPECT_THAT(result.err, Not(HasSubstr("to end by themselves")));
}

// The sentence comes while rank 0 runs, which is asked for its end only then.
TEST(FailuresTest, WithNoKillALossIsSaidAtOnce) {
  ChildProcess launcher(Launch({"-n", "2", "--no-kill"}, {"1:pid", "1:pause", "0:pid", "wait"}));
  std::array<int, 2> pids{};
  for (int i = 0; i < 2; ++i) {
    int rank = 0, pid = 0;
    const auto line = launcher.ReadLine();
    ASSERT_EQ(std::sscanf(line.value_or("").c_str(), "[%d] pid %d", &rank, &pid), 2);
    pids.at(rank) = pid;
  }
  kill(pids[1], SIGKILL);
  const bool said = launcher.ReadUntilError(fmt::format(
      "ringtail_launch: rank 1 (localhost, process {}) ended by SIGKILL; the other ranks continue",
      pids[1]));
  kill(pids[0], SIGTERM);
  const ProcessResult result = launcher.Wait();
  EXPECT_TRUE(said) << result.err;
  EXPECT_EQ(result.exit_code, 143);
  EXPECT_THAT(result.err, HasSubstr("exited with 143 (SIGTERM): without rank 0 the job ends"));
}

TEST(FailuresTest, WithNoKillTheEndOfRankZeroIsTheEnd) {
  ProcessResult result =
      RunProcess(Launch({"-n", "3", "--no-kill", "--timeout-kill", "2"}, {"0:exit=5", "wait"}));
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_THAT(result.err, HasSubstr("exited with 5: without rank 0 the job ends"));
  EXPECT_THAT(LinesOf(1, result.out), testing::ElementsAre("got 15"));
  // Also a good one: who is left is stopped.
  result = RunProcess(Launch({"-n", "3", "--no-kill", "--timeout-kill", "0.1"},
                             {"1:raise=19", "1:pause", "exit=0"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the job has succeeded without rank 1"));
}

TEST(FailuresTest, AProgramThatIsNotThere) {
  const std::string launcher = RT_BINARY_DIR "/bin/ringtail_launch";
  const ProcessResult result = RunProcess({launcher, "-n", "2", "--", "/no/such/program"});
  EXPECT_EQ(result.exit_code, 127);
  EXPECT_THAT(result.err, HasSubstr("] ringtail_launch: cannot start '/no/such/program': No such"));
  EXPECT_THAT(result.err, Not(HasSubstr("lost a peer")));
}

}  // namespace
}  // namespace ringtail
