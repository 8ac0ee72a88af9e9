#include "core/stop_signal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <tuple>

#include "tests/testing/process.h"

namespace ringtail {
namespace {

using std::chrono::milliseconds;
using Meaning = StopRule::Meaning;

constexpr int kAll[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};
constexpr char kProgram[] = RT_BINARY_DIR "/tests/core_stop_signal_main";

TEST(StopRule, OnlyALaterSignalEndsAtOnce) {
  const std::chrono::steady_clock::time_point start{};
  StopRule rule;
  EXPECT_EQ(rule.Next(SIGTERM, start), Meaning::kStop);
  EXPECT_EQ(rule.Next(SIGTERM, start), Meaning::kNothingNew);
  EXPECT_EQ(rule.Next(SIGINT, start + milliseconds(999)), Meaning::kNothingNew);
  EXPECT_EQ(rule.Next(SIGXCPU, start + milliseconds(5000)), Meaning::kNothingNew);
  EXPECT_EQ(rule.Next(SIGTERM, start + milliseconds(1000)), Meaning::kEndNow);
}

TEST(StopRule, SigxcpuStopsButNeverEnds) {
  const std::chrono::steady_clock::time_point start{};
  StopRule rule;
  for (int second = 0; second < 10; ++second) {
    EXPECT_EQ(rule.Next(SIGXCPU, start + std::chrono::seconds(second)),
              second == 0 ? Meaning::kStop : Meaning::kNothingNew);
  }
  EXPECT_EQ(rule.Next(SIGINT, start + std::chrono::seconds(10)), Meaning::kEndNow);
}

class StopSignalTest : public testing::Test {
 protected:
  // Children inherit ignored signals (nohup).
  StopSignalTest() { signal(SIGHUP, SIG_DFL); }

  // Waits until it reports the signal. (Its other thread writes the notice, a moment later perhaps.)
  static int Told(ChildProcess* child) {
    int number = 0;
    const auto line = child->ReadLine();
    EXPECT_TRUE(line && std::sscanf(line->c_str(), "told %d", &number) == 1) << line.value_or("");
    return number;
  }
};

TEST_F(StopSignalTest, EachSignalIsReceivedAndReported) {
  for (const int signal : kAll) {
    ChildProcess child({kProgram});
    ASSERT_TRUE(child.ReadLine());
    child.Signal(signal);
    EXPECT_EQ(Told(&child), signal);
    EXPECT_TRUE(child.ReadUntilError(SignalName(signal) + ": stopping\n"));
    child.Signal(SIGKILL);
    EXPECT_EQ(child.Wait().signal, SIGKILL);
  }
}

TEST_F(StopSignalTest, SimultaneousSignalsCountAsOneAndALaterOneEndsAtOnce) {
  ChildProcess child({kProgram});
  ASSERT_TRUE(child.ReadLine());
  child.SignalTogether({SIGTERM, SIGINT, SIGUSR1});
  EXPECT_EQ(Told(&child), SIGINT);
  // It still runs after all three signals, and prints the blocked signals of its threads.
  while (const auto line = child.ReadLine()) {
    if (*line == "end of masks") break;
  }
  const auto begin = std::chrono::steady_clock::now();
  const std::string stat = "/proc/" + std::to_string(child.pid()) + "/stat";
  char state = 'R';
  while (state != 'Z') {  // not reaped yet
    child.Signal(SIGTERM);
    std::this_thread::sleep_for(milliseconds(20));
    std::string word;
    std::ifstream(stat) >> word >> word >> state;
  }
  EXPECT_GT(std::chrono::steady_clock::now() - begin, milliseconds(500));
  const ProcessResult result = child.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_THAT(result.err, testing::Not(testing::HasSubstr("SIGTERM")));  // one line, not four
}

TEST_F(StopSignalTest, EveryThreadBlocksTheSignals) {
  ChildProcess child({kProgram});
  ASSERT_TRUE(child.ReadLine());
  child.Signal(SIGTERM);
  Told(&child);
  int threads = 0;
  while (const auto line = child.ReadLine()) {
    if (*line == "end of masks") break;
    ++threads;
    const uint64_t blocked = std::stoull(line->substr(line->rfind(' ')), nullptr, 16);
    for (const int signal : kAll) EXPECT_NE(blocked >> (signal - 1) & 1, 0U) << *line;
  }
  EXPECT_GE(threads, 3);  // main, rt-signals, and one started later
}

// mpirun ends all ranks when one has died; SIGUSR1 it passes on, and others may send SIGTERM, too.
TEST_F(StopSignalTest, TheLaunchersSigtermIsToldFromOthers) {
  const std::string from_parent =
      "SIGTERM from mpirun, which ends the job: another rank has ended, or mpirun was told to stop";
  const std::tuple<bool, int, std::string> cases[] = {{false, SIGTERM, "SIGTERM: stopping"},
                                                      {true, SIGTERM, from_parent},
                                                      {true, SIGUSR1, "SIGUSR1: stopping"}};
  for (const auto& [by_parent, signal, said] : cases) {
    ChildProcess child({kProgram, "launched"});
    ASSERT_TRUE(child.ReadLine());
    if (by_parent) {
      child.Signal(signal);
    } else {
      RunProcess({"sh", "-c", "kill -TERM " + std::to_string(child.pid())});
    }
    EXPECT_EQ(Told(&child), signal);
    EXPECT_TRUE(child.ReadUntilError(said + "\n"));
  }
}

// It is no signal of this process, whose own first one stops it in order, however late.
TEST_F(StopSignalTest, ASignalToAnotherProcessLeavesTheFirstOfThisOne) {
  ChildProcess child({kProgram, "other"});
  ASSERT_TRUE(child.ReadLine());
  EXPECT_EQ(Told(&child), SIGUSR1);
  EXPECT_TRUE(child.ReadUntilError("SIGUSR1: stopping\n"));
  std::this_thread::sleep_for(kOneSignal);
  child.Signal(SIGTERM);
  EXPECT_TRUE(child.ReadUntilError("SIGTERM: stopping\n"));
}

// Like a library's thread started before main().
TEST_F(StopSignalTest, AnEarlierThreadPassesSignalsOn) {
  ChildProcess child({kProgram, "early"});
  const auto line = child.ReadLine();
  int tid = 0;
  ASSERT_TRUE(line && std::sscanf(line->c_str(), "ready %d", &tid) == 1);
  ASSERT_EQ(syscall(SYS_tgkill, child.pid(), tid, SIGTERM), 0);
  EXPECT_EQ(Told(&child), SIGTERM);
}

TEST_F(StopSignalTest, AnIgnoredHangUpStaysIgnored) {
  ChildProcess child({"sh", "-c", "trap '' HUP INT; exec \"$0\"", kProgram});
  ASSERT_TRUE(child.ReadLine());
  child.SignalTogether({SIGHUP, SIGTERM});
  EXPECT_EQ(Told(&child), SIGTERM);
}

// Shells ignore it in background jobs; that is not meant for us.
TEST_F(StopSignalTest, AnIgnoredInterruptIsReceived) {
  ChildProcess child({"sh", "-c", "trap '' HUP INT; exec \"$0\"", kProgram});
  ASSERT_TRUE(child.ReadLine());
  child.Signal(SIGINT);
  EXPECT_EQ(Told(&child), SIGINT);
}

}  // namespace
}  // namespace ringtail
