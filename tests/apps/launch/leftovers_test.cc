// No process outlives a launch, whichever process is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>

#include "apps/launch/child_process.h"
#include "tests/apps/launch/launched.h"

namespace ringtail {
namespace {

constexpr int kTrials = 10;

struct Pids {
  int rank = 0, agent = 0;
};

// Reads until `ranks` ranks have printed "pid" and `orphans` orphans have printed theirs.
Pids ReadPids(ChildProcess* launcher, int ranks, int orphans) {
  Pids pids;
  while (ranks > 0 || orphans > 0) {
    const auto line = launcher->ReadLine();
    if (!line) break;
    int rank = 0, pid = 0, parent = 0;
    if (std::sscanf(line->c_str(), "[%d] pid %d of %d", &rank, &pid, &parent) == 3) {
      pids = {pid, parent};
      --ranks;
    } else if (std::sscanf(line->c_str(), "[%d] orphan %d", &rank, &pid) == 2) {
      --orphans;
    }
  }
  EXPECT_EQ(ranks + orphans, 0);
  return pids;
}

TEST(LeftoversTest, AKilledLauncherLeavesNothing) {
  for (int trial = 0; trial < kTrials; ++trial) {
    const TempDir dir;
    const Lifeline lifeline(dir);
    ChildProcess launcher(Launch({"-n", "3"}, {lifeline.action(), "orphan", "pid", "wait"}));
    const Pids pids = ReadPids(&launcher, 3, 3);
    launcher.Signal(SIGKILL);
    EXPECT_EQ(launcher.Wait().signal, SIGKILL);
    EXPECT_TRUE(lifeline.AllEnded());
    EXPECT_TRUE(EndsSoon(pids.agent));
  }
}

TEST(LeftoversTest, ALauncherKilledAtTheStartLeavesNothing) {
  for (int trial = 0; trial < kTrials; ++trial) {
    const TempDir dir;
    const Lifeline lifeline(dir);
    ChildProcess launcher(Launch({"-n", "4"}, {"0:say=begun", lifeline.action(), "pid", "wait"}));
    const auto line = launcher.ReadLine();  // of the first rank; others may be half started
    ASSERT_TRUE(line.has_value());
    int rank = 0, pid = 0, parent = 0;
    const bool opened = std::sscanf(line->c_str(), "[%d] pid %d of %d", &rank, &pid, &parent) == 3;
    launcher.Signal(SIGKILL);
    EXPECT_EQ(launcher.Wait().signal, SIGKILL);
    if (opened) {
      EXPECT_TRUE(lifeline.AllEnded());
      EXPECT_TRUE(EndsSoon(parent));
    }
  }
}

TEST(LeftoversTest, RanksThatIgnoreTheEndAreKilled) {
  const TempDir dir;
  const Lifeline lifeline(dir);
  ChildProcess launcher(Launch({"-n", "2"}, {lifeline.action(), "pid", "pause"}));
  const Pids pids = ReadPids(&launcher, 2, 0);
  launcher.Signal(SIGKILL);
  EXPECT_TRUE(lifeline.AllEnded());
  EXPECT_TRUE(EndsSoon(pids.agent));
}

TEST(LeftoversTest, AKilledAgentLeavesNothingAndIsNamed) {
  const TempDir dir;
  const Lifeline lifeline(dir);
  ChildProcess launcher(Launch({"-n", "2"}, {lifeline.action(), "orphan", "pid", "pause"}));
  const Pids pids = ReadPids(&launcher, 2, 2);
  kill(pids.agent, SIGKILL);
  const ProcessResult result = launcher.Wait();
  EXPECT_EQ(result.exit_code, 255);
  EXPECT_THAT(result.err, testing::HasSubstr("the agent on host localhost was ended by SIGKILL"));
  EXPECT_TRUE(lifeline.AllEnded());
}

TEST(LeftoversTest, BothKilledAtOnceLeaveNoRank) {
  const TempDir dir;
  const Lifeline lifeline(dir);
  ChildProcess launcher(Launch({"-n", "2"}, {lifeline.action(), "pid", "pause"}));
  const Pids pids = ReadPids(&launcher, 2, 0);
  kill(pids.agent, SIGKILL);
  launcher.Signal(SIGKILL);
  EXPECT_TRUE(lifeline.AllEnded());
}

TEST(LeftoversTest, ProcessesOfRanksEndWithThem) {
  const TempDir dir;
  const Lifeline lifeline(dir);
  // The orphan keeps the pipe of its rank open, which must not delay the launcher.
  const ProcessResult result =
      RunProcess(Launch({"-n", "2"}, {lifeline.action(), "orphan", "say=done"}));
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(lifeline.AllEnded());
}

TEST(LeftoversTest, ChildrenOfAnEarlierProgramAreLeftAlone) {
  // The shell becomes the launcher, which finds the shell's background job among its children.
  const std::string launch = std::string(RT_BINARY_DIR) + "/bin/ringtail_launch";
  const ProcessResult result = RunProcess(
      {"sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!; exec " + launch + " -n 1 -- true"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const int job = std::stoi(result.out);
  EXPECT_FALSE(WaitForEnd(job, 0)) << "the launcher must not have touched it";
  kill(job, SIGKILL);
}

}  // namespace
}  // namespace ringtail
