// What is not a rank's fault, by the clock of a story: slow and broken connections, ranks that
// still join, a pause of this process.
#include "dist/liveness/liveness_judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/dist/liveness/judge_story.h"

namespace ringtail {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- slow and broken connections ----------------------------------------------------------------

TEST(LivenessNetwork, PiecesOfDataAreSignsOfLife) {
  Story story(3);
  story.rank(1).heard = false;
  for (int i = 0; i < 20; ++i) {
    ASSERT_FALSE(story.Play(5s));
    story.judge().OnArrival(1);
  }
  EXPECT_TRUE(story.Play(10s));
}

// Rank 0 gathers megabytes of all; what rank 1 says of itself gets lost on rank 0's full link, and
// rank 2 hears it.
TEST(LivenessNetwork, WhomAThirdRankHearsLives) {
  Story story(3);
  ASSERT_FALSE(story.Play(2s));
  story.data_moves = true;
  story.rank(1).reaches = false;
  EXPECT_FALSE(story.Play(25s));
  story.rank(1).reaches = true;
  EXPECT_FALSE(story.Play(60s));
}

TEST(LivenessNetwork, WhoIsStoppedIsNamedAlthoughDataMoves) {
  Story story(3);
  story.data_moves = true;
  ASSERT_FALSE(story.Play(5s));
  story.rank(1).heard = false;
  const auto verdict = story.Play(60s);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(story.verdict_at(), 15s);
  EXPECT_THAT(verdict->culprits, ElementsAre(1));
}

TEST(LivenessNetwork, ABrokenWayFromARankThatLivesIsNamed) {
  Story story(3);
  story.rank(2).phase = Phase::kExchange;
  ASSERT_FALSE(story.Play(5s));
  story.rank(2).reaches = false;
  const auto verdict = story.Play(60s);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(story.verdict_at(), 15s);
  EXPECT_EQ(verdict->status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(
      verdict->status.message(),
      "rank 2 (node2, pid 72) has sent nothing to this rank for 10.0 s, though it lives: the "
      "network between rank 2 (node2, pid 72) and rank 0 (node0, pid 70) is broken, and it was "
      "in exchange of step 17");
  EXPECT_THAT(verdict->culprits, ElementsAre(2));
  EXPECT_FALSE(verdict->cut_off);
}

TEST(LivenessNetwork, WhileDataMovesAWayMayBeSilentForThreeTimesAsLong) {
  Story story(3);
  story.data_moves = true;
  ASSERT_FALSE(story.Play(5s));
  story.rank(2).reaches = false;
  ASSERT_TRUE(story.Play(60s));
  EXPECT_EQ(story.verdict_at(), 35s);
}

// Heartbeats come on their own connection, but that of the data has died without a word.
TEST(LivenessNetwork, AWayOfDataMayBreakAlone) {
  LivenessJudge judge(0, 2, {}, DescribeInStory, {});
  LivenessJudge::TimePoint now;
  std::optional<Verdict> verdict;
  for (uint32_t beat = 1; beat < 60 && !verdict; ++beat) {
    judge.Wake(now += 1s);
    ASSERT_TRUE(judge.OnHeartbeat(1, {.phase = Phase::kExchange, .beats = {beat, beat}}).ok());
    if (beat <= 5) judge.OnArrival(1);
    verdict = judge.Judge();
  }
  ASSERT_TRUE(verdict);
  EXPECT_EQ(now.time_since_epoch(), 15s);
  EXPECT_THAT(verdict->status.message(), HasSubstr("though it lives"));
}

// Of each rank, heartbeats and data came last at other moments.
TEST(LivenessNetwork, WhoIsCutOffDoesNotBlameTheWayThatWasSilentFirst) {
  LivenessJudge judge(0, 3, {}, DescribeInStory, {});
  LivenessJudge::TimePoint now;
  std::optional<Verdict> verdict;
  for (uint32_t beat = 1; beat < 240 && !verdict; ++beat) {
    judge.Wake(now += 250ms);
    for (const int peer : {1, 2}) {
      if (beat > 20) continue;
      ASSERT_TRUE(
          judge.OnHeartbeat(peer, {.phase = Phase::kExchange, .beats = {beat, beat, beat}}).ok());
      if (peer == 2 || beat <= 12) judge.OnArrival(peer);
    }
    verdict = judge.Judge();
  }
  ASSERT_TRUE(verdict);
  EXPECT_TRUE(verdict->cut_off) << verdict->status.ToString();
  EXPECT_EQ(now.time_since_epoch(), 15s);
}

// ---- the beginning ------------------------------------------------------------------------------

constexpr LivenessLimits kJoining{.begin_limit = 40s};

// Rank 2 cannot reach rank 1, so both still wait for their connection, for 30 s. Rank 0, which has
// all of its own, hears neither, and must not take that for its own fault: they know better, and
// say so.
TEST(LivenessNetwork, WhoseOthersAreStillJoiningIsNotCutOff) {
  Story story(3, kJoining);
  story.rank(1).heard = story.rank(2).heard = false;
  EXPECT_FALSE(story.Play(39s));
  const auto verdict = story.Play(2s);
  ASSERT_TRUE(verdict) << "and if no rank says anything?";
  EXPECT_TRUE(verdict->cut_off);
}

TEST(LivenessNetwork, WhoHasNotBegunInTimeIsNamed) {
  Story story(4, kJoining);
  story.rank(1).heard = story.rank(2).heard = false;
  const auto verdict = story.Play(60s);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(story.verdict_at(), 40s);
  EXPECT_FALSE(verdict->cut_off);
  EXPECT_THAT(verdict->culprits, ElementsAre(1, 2));
  EXPECT_THAT(verdict->status.message(),
              HasSubstr("rank 1 (node1, pid 71) has sent nothing for 40.0 s, since this rank is "
                        "connected to it: it is stopped or cut off, or cannot reach another rank"));
}

TEST(LivenessNetwork, WhoseOthersHaveBegunIsCutOffAsSoonAsEver) {
  Story story(3, kJoining);
  ASSERT_FALSE(story.Play(2s));
  story.rank(1).heard = story.rank(2).heard = false;
  const auto verdict = story.Play(60s);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(story.verdict_at(), 12s);
  EXPECT_TRUE(verdict->cut_off);
}

TEST(LivenessNetwork, WhoBeginsLateHasAllTheTimeToBeHeard) {
  Story story(3, kJoining);
  story.rank(2).heard = false;
  ASSERT_FALSE(story.Play(35s));
  story.rank(2).heard = true;
  EXPECT_FALSE(story.Play(60s));
  story.rank(2).heard = false;
  ASSERT_TRUE(story.Play(60s));
  EXPECT_EQ(story.verdict_at(), 105s);
}

// ---- this process is stopped, and continues -----------------------------------------------------

TEST(LivenessNetwork, AShortStopOfThisProcessBlamesNoRank) {
  Story story(4);
  for (int i = 0; i < 20; ++i) {
    ASSERT_FALSE(story.Play(3s));
    story.Skip(7s);
  }
  EXPECT_FALSE(story.judge().OwnFault());
}

TEST(LivenessNetwork, AfterALongStopTheEndOfTheWorldIsThisRanksFault) {
  Story story(4);
  ASSERT_FALSE(story.Play(5s));
  story.Skip(12s);
  ASSERT_FALSE(story.Play(250ms));
  const auto verdict = story.judge().OwnFault();
  ASSERT_TRUE(verdict);
  EXPECT_EQ(
      verdict->status.message(),
      "rank 0 (node0, pid 70), this process, was stopped for 12.2 s; the others have continued "
      "without it");
  EXPECT_THAT(verdict->culprits, ElementsAre(0));
}

TEST(LivenessNetwork, SilenceAfterALongStopIsThisRanksFault) {
  Story story(2);
  ASSERT_FALSE(story.Play(5s));
  story.rank(1).heard = false;
  story.Skip(12s);
  const auto verdict = story.Play(60s);
  ASSERT_TRUE(verdict);
  EXPECT_THAT(verdict->status.message(), HasSubstr("this process, was stopped"));
  EXPECT_THAT(verdict->culprits, ElementsAre(0));
}

TEST(LivenessNetwork, IfAllWereStoppedTogetherNothingIsWrong) {
  Story story(4);
  ASSERT_FALSE(story.Play(5s));
  story.Skip(1h);
  ASSERT_FALSE(story.Play(60s));
  EXPECT_FALSE(story.judge().OwnFault()) << "long ago";
  story.rank(1).heard = false;
  const auto verdict = story.Play(60s);
  ASSERT_TRUE(verdict);
  EXPECT_THAT(verdict->culprits, ElementsAre(1));
}

}  // namespace
}  // namespace ringtail
