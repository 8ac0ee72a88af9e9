#include "apps/launch/rank_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <vector>

namespace ringtail {
namespace {

using testing::HasSubstr;
using Kind = RankEnd::Kind;

RankEnd Exit(int code, int order) { return {.kind = Kind::kExited, .code = code, .order = order}; }
RankEnd Die(int signal, int order) {
  return {.kind = Kind::kSignalled, .code = signal, .order = order};
}
RankEnd ByLauncher(RankEnd end) {
  end.ended_by_launcher = true;
  return end;
}

struct Case {
  std::vector<RankEnd> ends;
  std::vector<int> asked;
  int exit_code, culprit;
};

TEST(RankEndTest, FindsTheFirstTrueCause) {
  const Case cases[] = {
      {{Exit(0, 1), Exit(0, 2)}, {}, 0, -1},
      {{Exit(75, 1), Die(SIGKILL, 2), Exit(75, 3)}, {}, 137, 1},
      {{Exit(75, 1), Exit(1, 3), Exit(3, 2)}, {}, 3, 2},
      {{Exit(76, 2), Exit(76, 1)}, {}, 76, -1},  // which of them is wrong cannot be told
      {{Exit(75, 1), Exit(1, 3), Exit(75, 2)}, {}, 1, 1},
      {{Exit(0, 1), Exit(75, 2)}, {}, 1, 0},
      {{Exit(0, 2), Exit(75, 1), Exit(0, 3)}, {}, 1, 0},
      {{Exit(0, 1), Die(SIGSEGV, 2), Exit(75, 3)}, {}, 139, 1},
      {{Exit(75, 1), ByLauncher(Die(SIGKILL, 2))}, {}, 137, 1},
      {{Exit(5, 1), ByLauncher(Exit(143, 2))}, {}, 5, 0},
      {{{.kind = Kind::kHostLost, .order = 1}, Exit(75, 2)}, {}, 255, 0},
      {{Exit(75, 1), ByLauncher({.kind = Kind::kHostLost, .order = 2})}, {}, 255, 1},
      {{Exit(130, 1), ByLauncher({.kind = Kind::kHostLost, .order = 2})}, {SIGINT}, 130, -1},
      {{Exit(143, 1), Exit(143, 2)}, {SIGTERM}, 143, -1},
      {{Exit(143, 1), Exit(143, 2)}, {}, 143, -1},
      {{Exit(152, 1), Exit(152, 2)}, {}, 152, -1},
      {{Exit(134, 1), Exit(134, 2)}, {}, 134, 0},
      {{Exit(143, 1), Exit(143, 2), Exit(75, 3)}, {}, 143, 0},
      {{Exit(75, 1), Exit(75, 2)}, {SIGHUP}, 129, -1},
      {{Exit(138, 2), Exit(75, 1)}, {SIGUSR1}, 138, -1},
      {{Exit(0, 1), Exit(0, 2)}, {SIGTERM}, 0, -1},
      {{Exit(75, 1), Exit(75, 2)}, {SIGUSR2}, 75, 0},
      {{Exit(143, 1), Die(SIGSEGV, 2)}, {SIGTERM}, 139, 1},
      {{ByLauncher(Die(SIGKILL, 1)), ByLauncher(Die(SIGKILL, 2))}, {SIGINT, SIGINT}, 130, -1},
  };
  for (const Case& one : cases) {
    const RankVerdict verdict = Judge(one.ends, one.asked);
    EXPECT_EQ(verdict.exit_code, one.exit_code) << EndTable(one.ends) << verdict.text;
    EXPECT_EQ(verdict.culprit, one.culprit) << EndTable(one.ends) << verdict.text;
    EXPECT_EQ(verdict.text.empty(), one.exit_code == 0);
  }
}

TEST(RankEndTest, AHostThatIsFoundToBeGoneLaterDidNotHang) {
  const std::vector<RankEnd> ends = {Exit(75, 1),
                                     ByLauncher({.kind = Kind::kHostLost, .order = 2})};
  EXPECT_THAT(Judge(ends, {}).text, HasSubstr("was lost with its host: the first to fail"));
}

TEST(RankEndTest, RankZeroDecidesInAJobThatOutlivesItsLosses) {
  const Case cases[] = {
      {{Exit(0, 1), Exit(0, 2)}, {}, 0, -1},
      {{Exit(0, 3), Die(SIGKILL, 1), Exit(0, 2)}, {}, 0, -1},
      {{Exit(0, 2), Exit(75, 1)}, {}, 0, -1},
      {{Exit(0, 1), ByLauncher(Die(SIGKILL, 2))}, {}, 0, -1},  // it was stopped
      {{Exit(0, 2), {.kind = Kind::kHostLost, .order = 1}}, {}, 0, -1},
      {{Exit(3, 2), Die(SIGKILL, 1), Exit(75, 3)}, {}, 3, 0},
      {{Die(SIGSEGV, 1), Exit(75, 2)}, {}, 139, 0},
      {{Exit(76, 1), Exit(75, 2)}, {}, 76, 0},
      {{Exit(75, 2), Die(SIGKILL, 1)}, {}, 137, 1},
      {{ByLauncher(Die(SIGKILL, 2)), Exit(75, 1)}, {}, 137, 0},
      {{Exit(143, 1), Exit(143, 2)}, {SIGTERM}, 143, -1},
      {{Exit(143, 1), Exit(143, 2)}, {}, 143, -1},
  };
  for (const Case& one : cases) {
    const RankVerdict verdict = JudgeByRankZero(one.ends, one.asked);
    EXPECT_EQ(verdict.exit_code, one.exit_code) << EndTable(one.ends) << verdict.text;
    EXPECT_EQ(verdict.culprit, one.culprit) << EndTable(one.ends) << verdict.text;
  }
  EXPECT_EQ(JudgeByRankZero(cases[0].ends, {}).text, "");
  EXPECT_EQ(JudgeByRankZero(cases[1].ends, {}).text, "the job has succeeded without rank 1");
  EXPECT_THAT(JudgeByRankZero(cases[6].ends, {}).text,
              HasSubstr("ended by SIGSEGV: without rank 0 the job ends"));
}

TEST(RankEndTest, SpeaksOfMemoryWhenTheKernelMayHaveKilled) {
  RankEnd killed = Die(SIGKILL, 1);
  killed.peak_kib = 300 * 1024;
  EXPECT_THAT(Judge(std::vector{killed}, {}).text, testing::Not(HasSubstr("out of memory")));
  killed.memory_kills = 1;
  EXPECT_THAT(Judge(std::vector{killed}, {}).text,
              HasSubstr("possibly out of memory: the kernel killed processes for lack of memory "
                        "meanwhile, and its peak memory was 300 MiB"));
  RankEnd crashed = Die(SIGSEGV, 1);
  crashed.memory_kills = 1;
  EXPECT_THAT(Judge(std::vector{crashed}, {}).text, testing::Not(HasSubstr("memory")));
}

TEST(RankEndTest, TheTableHasALinePerKindOfEnd) {
  EXPECT_EQ(EndTable(std::vector{Exit(75, 2), Exit(75, 3), Die(SIGABRT, 1), Exit(75, 4)}),
            "  rank 2: ended by SIGABRT\n  ranks 0-1,3: exited with 75 (lost a peer)\n");
}

}  // namespace
}  // namespace ringtail
