// The launcher as its user sees it: environment, output, signals, cores.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <set>

#include "apps/launch/agent/core_split.h"
#include "apps/launch/child_process.h"
#include "apps/launch/line_splitter.h"
#include "apps/launch/number_list.h"
#include "core/storage/file.h"
#include "tests/apps/launch/launched.h"

namespace ringtail {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

TEST(LaunchTest, RanksLearnWhoTheyAre) {
  const ProcessResult result =
      RunProcess(Launch({"-n", "3", "--port", "12345"}, {"environment"}),
                 {"RINGTAIL_RANK=7", "RANK=9", "RINGTAIL_TOKEN_FILE=/x", "MASTER_ADDR=elsewhere",
                  "RINGTAIL_NOTE=kept", "OMP_NUM_THREADS=5"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::set<std::string> tokens;
  for (int rank = 0; rank < 3; ++rank) {
    const auto lines = LinesOf(rank, result.out);
    for (const std::string& line :
         {fmt::format("RANK={}", rank), fmt::format("LOCAL_RANK={}", rank),
          std::string("WORLD_SIZE=3"), std::string("LOCAL_WORLD_SIZE=3"),
          std::string("MASTER_ADDR=127.0.0.1"), std::string("MASTER_PORT=12345"),
          std::string("RINGTAIL_RANK="), std::string("RINGTAIL_TOKEN_FILE="),
          std::string("RINGTAIL_NOTE=kept"), std::string("OMP_NUM_THREADS=5")}) {
      EXPECT_THAT(lines, Contains(line));
    }
    for (const std::string& line : lines) {
      if (line.starts_with("RINGTAIL_TOKEN=")) tokens.insert(line);
    }
  }
  ASSERT_EQ(tokens.size(), 1u);
  EXPECT_THAT(*tokens.begin(), MatchesRegex("RINGTAIL_TOKEN=[0-9a-f]{32}"));
}

TEST(LaunchTest, EachLaunchHasItsOwnTokenAndAPort) {
  std::set<std::string> tokens;
  for (int launch = 0; launch < 2; ++launch) {
    const auto lines = LinesOf(0, RunProcess(Launch({"-n", "1"}, {"environment"})).out);
    EXPECT_THAT(lines, Contains(MatchesRegex("MASTER_PORT=[1-9][0-9]+")));
    for (const std::string& line : lines) {
      if (line.starts_with("RINGTAIL_TOKEN=")) tokens.insert(line);
    }
  }
  EXPECT_EQ(tokens.size(), 2u);
}

TEST(LaunchTest, InputIsEmpty) {
  const std::string launcher = RT_BINARY_DIR "/bin/ringtail_launch";
  const ProcessResult result = RunProcess({"sh", "-c", "yes | " + launcher + " -n 2 -- wc -c"});
  EXPECT_THAT(LinesOf(0, result.out), ElementsAre("0"));
  EXPECT_THAT(LinesOf(1, result.out), ElementsAre("0"));
}

TEST(LaunchTest, LinesHaveTheirRankAndKeepTheirStream) {
  const ProcessResult result =
      RunProcess(Launch({"-n", "2"}, {"say=out", "complain=err", "say=", "part=the last"}));
  EXPECT_THAT(LinesOf(0, result.out), ElementsAre("out", "", "the last"));
  EXPECT_THAT(LinesOf(1, result.out), ElementsAre("out", "", "the last"));
  EXPECT_THAT(LinesOf(1, result.err), ElementsAre("err"));
  EXPECT_EQ(result.out.back(), '\n');
}

TEST(LaunchTest, LinesOfDifferentRanksAreNeverMixed) {
  constexpr int kLines = 3000;
  // Both outputs into one pipe: the harder case.
  std::vector<std::string> command =
      Launch({"-n", "4"}, {"lines=" + std::to_string(kLines), "part=" + std::string(9, '!')});
  command.insert(command.begin(), {"sh", "-c", "\"$@\" 2>&1", "sh"});
  const ProcessResult result = RunProcess(command);
  for (int rank = 0; rank < 4; ++rank) {
    const auto lines = LinesOf(rank, result.out);
    EXPECT_EQ(lines.size(), kLines + 1u);
    const char letter = static_cast<char>('a' + rank);
    for (const std::string& line : lines) {
      EXPECT_TRUE(line.find_first_not_of(letter) == std::string::npos || line == "!!!!!!!!!")
          << line;
    }
  }
}

TEST(LaunchTest, LongLinesAreCut) {
  const size_t bytes = 2 * LineSplitter::kMaxLineBytes + 10;
  const ProcessResult result =
      RunProcess(Launch({"-n", "2"}, {"long=" + std::to_string(bytes), "say=", "say=next"}));
  for (int rank = 0; rank < 2; ++rank) {
    const auto lines = LinesOf(rank, result.out);
    ASSERT_EQ(lines.size(), 4u);
    EXPECT_EQ(lines[0].size() + lines[1].size() + lines[2].size(), bytes);
    EXPECT_EQ(lines[3], "next");
  }
}

TEST(LaunchTest, OutputDirHasAFilePerRank) {
  const TempDir dir;
  const std::string folder = dir.File("a/b");
  const ProcessResult result = RunProcess(
      Launch({"-n", "2", "--output-dir", folder}, {"0:say=zero", "1:say=one", "1:complain=err"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(*ReadFileText(folder + "/rank-0.txt", 100), "zero\n");
  const std::string one = *ReadFileText(folder + "/rank-1.txt", 100);
  EXPECT_TRUE(one == "one\nerr\n" || one == "err\none\n") << one;
  EXPECT_THAT(LinesOf(1, result.out), ElementsAre("one"));
  const ProcessResult refused =
      RunProcess(Launch({"-n", "1", "--output-dir", "/proc/nothing"}, {"say=never"}));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("/proc/nothing"));
  EXPECT_EQ(refused.out, "");
}

TEST(LaunchTest, AReaderThatLeavesDoesNotStopTheRanks) {
  const TempDir dir;
  std::vector<std::string> command =
      Launch({"-n", "2", "--output-dir", dir.File("out")}, {"lines=20000", "say=the end"});
  command.insert(command.begin(), {"sh", "-c", "{ \"$@\"; echo code $? >&2; } | head -n 1", "sh"});
  const ProcessResult result = RunProcess(command);
  EXPECT_THAT(result.err, HasSubstr("code 0\n"));
  const std::string text = *ReadFileText(dir.File("out/rank-1.txt"), 1 << 24);
  EXPECT_NE(text.find("\nthe end\n"), std::string::npos) << text.size() << " bytes";
}

class SignalTest : public testing::TestWithParam<int> {};

TEST_P(SignalTest, GoesToAllRanksAndIsTheExitCode) {
  ChildProcess launcher(Launch({"-n", "3"}, {"say=ready", "wait"}));
  for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(launcher.ReadLine().has_value());
  launcher.Signal(GetParam());
  const ProcessResult result = launcher.Wait();
  EXPECT_EQ(result.exit_code, 128 + GetParam()) << result.err;
  const std::string got = fmt::format("got {}", GetParam());
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(LinesOf(rank, result.out), ElementsAre("ready", got));
  }
  EXPECT_THAT(result.err, HasSubstr("ringtail_launch: stopped by SIG"));
}

INSTANTIATE_TEST_SUITE_P(All, SignalTest,
                         testing::Values(SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU));

// As timeout(1) does: it signals its child and then their group.
TEST(LaunchTest, TwoSignalsTogetherCountAsOne) {
  ChildProcess launcher(Launch({"-n", "2"}, {"say=ready", "wait"}));
  for (int rank = 0; rank < 2; ++rank) ASSERT_TRUE(launcher.ReadLine().has_value());
  launcher.SignalTogether({SIGTERM, SIGINT, SIGHUP});
  const ProcessResult result = launcher.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGHUP) << result.err;  // the lowest number is taken first
  for (int rank = 0; rank < 2; ++rank) EXPECT_THAT(LinesOf(rank, result.out), Contains("got 1"));
}

TEST(LaunchTest, ALaterSignalKills) {
  ChildProcess launcher(Launch({"-n", "2"}, {"say=ready", "pause"}));
  for (int rank = 0; rank < 2; ++rank) ASSERT_TRUE(launcher.ReadLine().has_value());
  launcher.Signal(SIGINT);
  while (!WaitForEnd(launcher.pid(), 50)) launcher.Signal(SIGTERM);
  const ProcessResult result = launcher.Wait();
  EXPECT_TRUE(result.exit_code == 128 + SIGINT || result.exit_code == 128 + SIGTERM);
  EXPECT_THAT(result.err, HasSubstr("ranks 0-1: ended by SIGKILL (sent by the launcher)"));
}

// Also if the launcher ignores and blocks some.
TEST(LaunchTest, RanksBeginWithOrdinarySignals) {
  const ProcessResult result = RunProcess(
      {"sh", "-c",
       "trap '' HUP USR2 PIPE; exec \"$0\" -n 1 -- grep -E 'SigBlk|SigIgn' /proc/self/status",
       RT_BINARY_DIR "/bin/ringtail_launch"});
  const auto lines = LinesOf(0, result.out);
  ASSERT_EQ(lines.size(), 2U) << result.err;
  for (const std::string& line : lines) {
    constexpr uint64_t kNotGlibcsOwn = 0x7fffffff;
    const uint64_t signals = std::stoull(line.substr(line.find('\t')), nullptr, 16);
    EXPECT_EQ(signals & kNotGlibcsOwn, 0U) << line;
  }
}

// A batch system may signal all processes of a job; the launcher decides when the ranks have had
// enough time.
TEST(LaunchTest, ASignalToAnAgentGoesToItsRanksAlone) {
  ChildProcess launcher(Launch({"-n", "2"}, {"agent", "wait"}));
  const auto line = launcher.ReadLine();
  int agent = 0;
  ASSERT_TRUE(line && std::sscanf(line->c_str() + 4, "agent %d", &agent) == 1);
  ASSERT_TRUE(launcher.ReadLine());
  ASSERT_EQ(kill(agent, SIGTERM), 0);
  const ProcessResult result = launcher.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
  EXPECT_THAT(LinesOf(1, result.out), Contains("got 15"));
  EXPECT_THAT(result.err, HasSubstr("ringtail_launch: stopped by SIGTERM"));
}

TEST(LaunchTest, ARankThatFailsWhileTheUserStopsIsNamed) {
  ChildProcess launcher(Launch({"-n", "2"}, {"say=ready", "0:wait", "1:raise=11"}));
  for (int rank = 0; rank < 2; ++rank) ASSERT_TRUE(launcher.ReadLine().has_value());
  launcher.Signal(SIGTERM);
  const ProcessResult result = launcher.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGSEGV) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 1 (localhost"));
}

TEST(LaunchTest, CoresAreSplitBetweenTheRanks) {
  const std::vector<int> cores = AllowedCores();
  const int ranks = static_cast<int>(cores.size());
  const auto parts = SplitCoreList(cores, ranks);
  const ProcessResult bound =
      RunProcess(Launch({"-n", std::to_string(ranks)}, {"cores", "environment"}));
  for (int rank = 0; rank < ranks; ++rank) {
    const auto lines = LinesOf(rank, bound.out);
    EXPECT_THAT(lines, Contains(FormatNumbers(parts[rank])));
    EXPECT_THAT(lines, Contains("OMP_NUM_THREADS=1"));
  }
  const ProcessResult crowded = RunProcess(Launch({"-n", std::to_string(ranks + 1)}, {"cores"}));
  EXPECT_THAT(LinesOf(ranks, crowded.out), ElementsAre(FormatNumbers({cores[0]})));
  const ProcessResult free = RunProcess(Launch({"-n", "2", "--no-bind"}, {"cores"}));
  EXPECT_THAT(LinesOf(1, free.out), ElementsAre(FormatNumbers(cores)));
}

TEST(LaunchTest, OpenMpBindingTheLauncherDoesNotBindTheRanks) {
  const std::string all = FormatNumbers(AllowedCores());
  for (const char* flag : {"--port=1234", "--no-bind"}) {
    const ProcessResult result = RunProcess(Launch({"-n", "1", flag}, {"cores"}),
                                            {"OMP_PROC_BIND=true", "OMP_PLACES=cores"});
    EXPECT_THAT(LinesOf(0, result.out), ElementsAre(all)) << flag;
  }
}

TEST(LaunchTest, ItStartsWithClosedStandardFiles) {
  std::vector<std::string> command = Launch({"-n", "2"}, {"say=lost", "exit=3"});
  command.insert(command.begin(), {"sh", "-c", "\"$@\" <&- >&- 2>&-", "sh"});
  EXPECT_EQ(RunProcess(command).exit_code, 3);
}

}  // namespace
}  // namespace ringtail
