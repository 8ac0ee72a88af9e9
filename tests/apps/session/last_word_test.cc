// How long a process may live on when its world has ended, by what its training thread does.
#include "apps/session/last_word.h"

#include <gtest/gtest.h>

namespace ringtail {
namespace {

using std::chrono::seconds;

constexpr LastWord::Limits kLimits{
    .silence = seconds(10), .returning = seconds(2), .most = seconds(300)};

class LastWordTest : public testing::Test {
 protected:
  // In seconds after the end of the world.
  bool IsOver(int at) { return last_.IsOver(training_.Read(), begin_ + seconds(at)); }

  const LastWord::TimePoint begin_{};
  Progress progress_;
  WatchedProgress training_;
  LastWord last_{kLimits, /*hangs=*/false, begin_};
};

TEST_F(LastWordTest, AThreadThatWaitsReturnsAtOnce) {
  training_.Watch(&progress_);
  progress_.Enter(Phase::kExchange);
  EXPECT_FALSE(IsOver(0));
  EXPECT_FALSE(IsOver(1));
  EXPECT_TRUE(IsOver(2));
}

TEST_F(LastWordTest, AThreadThatComputesMayDoSo) {
  training_.Watch(&progress_);
  for (int at = 0; at < 299; at += 9) {
    progress_.Enter(Phase::kForward);
    EXPECT_FALSE(IsOver(at));
    progress_.Tick();
  }
  EXPECT_TRUE(IsOver(300)) << "it does not listen";
}

TEST_F(LastWordTest, OneThatDoesNotMoveHangs) {
  training_.Watch(&progress_);
  progress_.Enter(Phase::kBackward);
  EXPECT_FALSE(IsOver(0));
  EXPECT_FALSE(IsOver(9));
  EXPECT_TRUE(IsOver(10));
}

TEST_F(LastWordTest, ADiskMayBeSlow) {
  training_.Watch(&progress_);
  progress_.Enter(Phase::kForward);
  EXPECT_FALSE(IsOver(0));
  progress_.Enter(Phase::kCheckpoint);
  EXPECT_FALSE(IsOver(5));
  EXPECT_FALSE(IsOver(200));
  EXPECT_TRUE(IsOver(300));
}

// Nor is anything read of a session that has ended.
TEST_F(LastWordTest, AThreadThatHasReturnedEndsTheProcess) {
  training_.Watch(&progress_);
  progress_.Enter(Phase::kUpdate);
  EXPECT_FALSE(IsOver(0));
  training_.Forget();
  EXPECT_FALSE(IsOver(7));
  EXPECT_FALSE(IsOver(8));
  EXPECT_TRUE(IsOver(9));
}

TEST_F(LastWordTest, TheRankThatHangsGetsNoMore) {
  LastWord last(kLimits, /*hangs=*/true, begin_);
  progress_.Enter(Phase::kBackward);
  EXPECT_FALSE(last.IsOver(progress_.Read(), begin_));
  EXPECT_TRUE(last.IsOver(progress_.Read(), begin_ + seconds(2)));
}

}  // namespace
}  // namespace ringtail
