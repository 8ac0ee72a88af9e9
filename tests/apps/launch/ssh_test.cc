// Ranks on other hosts, by way of a program that stands in for ssh.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "core/storage/file.h"
#include "tests/apps/launch/launched.h"

namespace ringtail {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(SshTest, RanksOfAllHostsFormOneWorld) {
  const ProcessResult result =
      RunProcess(LaunchOverSsh({"--hosts", "a:2,b:1"}, {"environment"}), {"RINGTAIL_NOTE=goes"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (int rank = 0; rank < 3; ++rank) {
    const auto lines = LinesOf(rank, result.out);
    EXPECT_THAT(lines, Contains("RANK=" + std::to_string(rank)));
    EXPECT_THAT(lines, Contains("LOCAL_RANK=" + std::to_string(rank % 2)));
    EXPECT_THAT(lines, Contains(rank < 2 ? "LOCAL_WORLD_SIZE=2" : "LOCAL_WORLD_SIZE=1"));
    EXPECT_THAT(lines, Contains("WORLD_SIZE=3"));
    EXPECT_THAT(lines, Contains("MASTER_ADDR=a"));
    EXPECT_THAT(lines, Contains("RINGTAIL_NOTE=goes"));
  }
}

TEST(SshTest, TheTokenIsOnNoCommandLine) {
  const TempDir dir;
  const ProcessResult result = RunProcess(
      LaunchOverSsh({"--hosts", "a,b", "--env", "NOTE=x", "--env", "PATH"}, {"environment"}),
      {"FAKE_SSH_LOG=" + dir.File("log")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto lines = LinesOf(0, result.out);
  EXPECT_THAT(lines, Contains("NOTE=x"));
  std::string token;
  for (const std::string& line : lines) {
    if (line.starts_with("RINGTAIL_TOKEN=")) token = line.substr(line.find('=') + 1);
  }
  ASSERT_EQ(token.size(), 32u);
  const std::string log = *ReadFileText(dir.File("log"), 1 << 16);
  EXPECT_THAT(log, HasSubstr(" a exec "));
  EXPECT_THAT(log, HasSubstr("/bin/ringtail_launch agent"));
  EXPECT_THAT(log, Not(HasSubstr(token)));
}

TEST(SshTest, HostfileAndFewerRanksThanSlots) {
  const TempDir dir;
  std::ofstream(dir.File("hosts")) << "# two hosts\nn1 slots=2\n\nn2:2 # the other\nn3\n";
  const ProcessResult result =
      RunProcess(LaunchOverSsh({"-n", "3", "--hostfile", dir.File("hosts")}, {"environment"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(LinesOf(2, result.out), Contains("LOCAL_WORLD_SIZE=1"));
  EXPECT_THAT(LinesOf(2, result.out), Contains("MASTER_ADDR=n1"));
}

TEST(SshTest, WhatALoginShellPrintsCannotControlTheTerminal) {
  const ProcessResult result = RunProcess(LaunchOverSsh({"--hosts", "rude"}, {"say=here"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rude: \\x1B[2J\\x1B]0;owned\\x07\n"));
  EXPECT_THAT(result.err, HasSubstr("rude: away \\x1B[3J\n"));
  EXPECT_THAT(result.err, Not(HasSubstr("\x1B")));
}

TEST(SshTest, AHostThatCannotBeReachedIsNamed) {
  const ProcessResult result = RunProcess(LaunchOverSsh({"--hosts", "a,absent"}, {"say=never"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("absent: connect to host absent: No route to host\n"));
  EXPECT_THAT(result.err, HasSubstr("cannot start an agent on host absent: it exited with 255"));
  EXPECT_EQ(result.out, "");
}

TEST(SshTest, WhatALoginShellPrintsDoesNoHarm) {
  const ProcessResult result = RunProcess(LaunchOverSsh({"--hosts", "noisy:2"}, {"say=hello"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(LinesOf(1, result.out), ElementsAre("hello"));
  EXPECT_THAT(result.err, HasSubstr("noisy: Welcome to noisy\n"));
  EXPECT_THAT(result.err, HasSubstr("noisy: quota exceeded\n"));
}

TEST(SshTest, SignalsReachAllHosts) {
  ChildProcess launcher(LaunchOverSsh({"--hosts", "a,b"}, {"say=ready", "wait"}));
  for (int rank = 0; rank < 2; ++rank) ASSERT_TRUE(launcher.ReadLine().has_value());
  launcher.Signal(SIGUSR1);
  const ProcessResult result = launcher.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGUSR1);
  for (int rank = 0; rank < 2; ++rank) EXPECT_THAT(LinesOf(rank, result.out), Contains("got 10"));
}

TEST(SshTest, ARankOnAnotherHostIsBlamed) {
  const ProcessResult result = RunProcess(
      LaunchOverSsh({"--hosts", "a,b", "--timeout-kill", "0.1"}, {"1:raise=11", "wait"}));
  EXPECT_EQ(result.exit_code, 128 + SIGSEGV);
  EXPECT_THAT(result.err, HasSubstr("rank 1 (b, process "));
}

TEST(SshTest, ALauncherThatIsKilledLeavesNothingOnOtherHosts) {
  const TempDir dir;
  const Lifeline lifeline(dir);
  ChildProcess launcher(
      LaunchOverSsh({"--hosts", "a,b"}, {lifeline.action(), "orphan", "pid", "wait"}));
  for (int line = 0; line < 4; ++line) ASSERT_TRUE(launcher.ReadLine().has_value());
  launcher.Signal(SIGKILL);
  launcher.Wait();
  EXPECT_TRUE(lifeline.AllEnded());
}

TEST(SshTest, AConnectionThatBreaksIsNamed) {
  const TempDir dir;
  const Lifeline lifeline(dir);
  ChildProcess launcher(LaunchOverSsh({"--hosts", "a,b", "--timeout-kill", "0.1"},
                                      {lifeline.action(), "pid", "pause"}),
                        {});
  int agent = 0;
  for (int line = 0; line < 2; ++line) {
    const std::string text = launcher.ReadLine().value_or("");
    int rank = 0, pid = 0, parent = 0;
    ASSERT_EQ(std::sscanf(text.c_str(), "[%d] pid %d of %d", &rank, &pid, &parent), 3) << text;
    if (rank == 1) agent = parent;
  }
  kill(agent, SIGKILL);
  const ProcessResult result = launcher.Wait();
  EXPECT_EQ(result.exit_code, 255);
  EXPECT_THAT(result.err, HasSubstr("the agent on host b was ended by SIGKILL"));
  EXPECT_THAT(result.err, HasSubstr("was lost with its host: the first to fail"));
  EXPECT_TRUE(lifeline.AllEnded());
}

}  // namespace
}  // namespace ringtail
