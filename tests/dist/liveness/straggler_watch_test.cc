// Which rank is slow, by the clock of a story (dist/liveness/straggler_watch.h).
#include "dist/liveness/straggler_watch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringtail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Describe(int rank) {
  return fmt::format("rank {} (node{}, pid 7{})", rank, rank, rank);
}

// What a watch says when ranks take so long (microseconds) from now on, for 6 s if that is not
// said.
class Steps {
 public:
  explicit Steps(int world_size) : watch_(world_size, 5s, Describe) {}

  std::vector<std::string> Take(const std::vector<uint64_t>& compute_us, milliseconds time = 6s) {
    constexpr milliseconds kWake{250};
    std::vector<std::string> said;
    for (milliseconds played{0}; played < time; played += kWake) {
      for (std::string& notice : watch_.Update(compute_us, now_ += kWake)) said.push_back(notice);
    }
    return said;
  }

 private:
  StragglerWatch watch_;
  StragglerWatch::TimePoint now_;
};

TEST(StragglerWatch, ASlowRankIsNamedWhenItBeginsAndWhenItEnds) {
  Steps steps(4);
  EXPECT_THAT(steps.Take({240'000, 250'000, 240'000, 230'000}), IsEmpty());
  EXPECT_THAT(
      steps.Take({240'000, 250'000, 812'000, 230'000}),
      ElementsAre("rank 2 (node2, pid 72) is slow, and the others wait for it: 812.0 ms per "
                  "step, the others 240.0 ms; see what else runs on its host, or give it "
                  "fewer images (--local-batch)"));
  EXPECT_THAT(steps.Take({240'000, 250'000, 900'000, 230'000}), IsEmpty()) << "said once";
  EXPECT_THAT(steps.Take({240'000, 250'000, 340'000, 230'000}), IsEmpty()) << "not yet over";
  EXPECT_THAT(steps.Take({240'000, 250'000, 260'000, 230'000}),
              ElementsAre("rank 2 (node2, pid 72) is no longer slow: 260.0 ms per step, the others "
                          "240.0 ms"));
  EXPECT_THAT(steps.Take({240'000, 250'000, 355'000, 230'000}), IsEmpty());
}

// Two ranks on two cores, and some other program that takes a core now and then.
TEST(StragglerWatch, WhatDoesNotLastIsNotSaid) {
  Steps steps(2);
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(steps.Take({24'900, 12'100}, 4s), IsEmpty());
    EXPECT_THAT(steps.Take({12'000, 12'100}, 250ms), IsEmpty());
  }
}

TEST(StragglerWatch, AnEndThatDoesNotLastIsNotSaid) {
  Steps steps(2);
  EXPECT_THAT(steps.Take({500'000, 240'000}), ElementsAre(HasSubstr("is slow")));
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(steps.Take({240'000, 240'000}, 4s), IsEmpty());
    EXPECT_THAT(steps.Take({500'000, 240'000}, 250ms), IsEmpty());
  }
}

// Steps of some milliseconds.
TEST(StragglerWatch, AFewMillisecondsAreNotWorthALine) {
  Steps steps(2);
  EXPECT_THAT(steps.Take({11'900, 2'000}, 1h), IsEmpty());
  EXPECT_THAT(steps.Take({12'100, 2'000}), ElementsAre(HasSubstr("rank 0")));
}

TEST(StragglerWatch, OfTwoRanksTheSlowerIsNamed) {
  EXPECT_THAT(Steps(2).Take({500'000, 240'000}), ElementsAre(HasSubstr("rank 0")));
}

TEST(StragglerWatch, SlowRanksDoNotHideOneAnother) {
  EXPECT_THAT(Steps(3).Take({240'000, 800'000, 900'000}),
              ElementsAre(HasSubstr("rank 1"), HasSubstr("rank 2")));
}

TEST(StragglerWatch, WhoIsNotKnownYetIsNotCompared) {
  Steps steps(3);
  EXPECT_THAT(steps.Take({0, 900'000, 0}), IsEmpty());
  EXPECT_THAT(steps.Take({0, 900'000, 100'000}), ElementsAre(Not(HasSubstr("no longer"))));
}

}  // namespace
}  // namespace ringtail
