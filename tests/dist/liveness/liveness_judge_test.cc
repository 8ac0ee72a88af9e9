// Which rank hangs, and what ranks may say of themselves, by the clock of a story.
#include "dist/liveness/liveness_judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/dist/liveness/judge_story.h"

namespace ringtail {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LivenessJudge, NoRankIsBlamedWhileAllMove) {
  Story story(4);
  for (int rank = 0; rank < 4; ++rank) {
    story.rank(rank).moving = true;
    story.rank(rank).phase = static_cast<Phase>(rank);
  }
  EXPECT_FALSE(story.Play(100s));
}

TEST(LivenessJudge, WhoOnlyWaitsForOthersIsNeverBlamed) {
  Story story(4);
  EXPECT_FALSE(story.Play(1h));
}

TEST(LivenessJudge, ASilentRankIsNamedWithWhatItDidLast) {
  Story story(4);
  story.rank(2).phase = Phase::kBackward;
  story.rank(2).moving = true;
  ASSERT_FALSE(story.Play(5s));
  story.rank(2).heard = false;
  const auto verdict = story.Play(60s);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(story.verdict_at(), 15s);
  EXPECT_EQ(verdict->status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(verdict->status.message(),
            "rank 2 (node2, pid 72) has sent nothing for 10.0 s, is stopped or cut off, and was in "
            "backward of step 17");
  EXPECT_THAT(verdict->culprits, ElementsAre(2));
}

TEST(LivenessJudge, ASilenceOfLessThanTheLimitIsNoError) {
  Story story(3);
  story.rank(1).heard = story.rank(2).heard = false;
  ASSERT_FALSE(story.Play(9s));
  story.rank(1).heard = story.rank(2).heard = true;
  EXPECT_FALSE(story.Play(60s));
}

TEST(LivenessJudge, AStalledRankIsNamedAlthoughItsHeartBeats) {
  Story story(4);
  story.rank(1).phase = Phase::kBackward;
  const auto verdict = story.Play(60s);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(story.verdict_at(), 10s);
  EXPECT_EQ(verdict->status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(verdict->status.message(),
            "rank 1 (node1, pid 71) is alive, but its training thread has not moved for 10.0 s, in "
            "backward of step 17");
  EXPECT_THAT(verdict->culprits, ElementsAre(1));
}

TEST(LivenessJudge, AStalledRankNamesItself) {
  Story story(4);
  story.rank(0).phase = Phase::kDataWait;
  const auto verdict = story.Play(60s);
  ASSERT_TRUE(verdict);
  EXPECT_THAT(verdict->status.message(),
              AllOf(HasSubstr("rank 0 (node0, pid 70) is alive"), HasSubstr("in data wait of")));
  EXPECT_THAT(verdict->culprits, ElementsAre(0));
}

// The others' clocks may be a little ahead, and end the world before this rank's own judge does.
TEST(LivenessJudge, AStalledRankKnowsThatItWasItsFault) {
  Story story(4);
  story.rank(0) = {.phase = Phase::kBackward, .moving = true};
  EXPECT_FALSE(story.Play(30s));
  EXPECT_FALSE(story.judge().OwnFault());
  story.rank(0).moving = false;
  EXPECT_FALSE(story.Play(8s));
  EXPECT_FALSE(story.judge().OwnFault());
  EXPECT_FALSE(story.Play(1s));
  const auto verdict = story.judge().OwnFault();
  ASSERT_TRUE(verdict);
  EXPECT_THAT(verdict->culprits, ElementsAre(0));
  EXPECT_THAT(verdict->status.message(), HasSubstr("rank 0 (node0, pid 70) is alive, but"));
}

TEST(LivenessJudge, TheLimitGrowsWithTheRanksOwnSteps) {
  Story story(3);
  story.rank(1) = {.phase = Phase::kForward, .step_us = 2'000'000};
  const auto verdict = story.Play(60s);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(story.verdict_at(), 40s);
}

TEST(LivenessJudge, PhasesThatMayBeLongHaveALimitOfTheirOwn) {
  for (const Phase phase : {Phase::kSetUp, Phase::kEvaluation, Phase::kCheckpoint}) {
    Story story(3);
    story.rank(2).phase = phase;
    const auto verdict = story.Play(11min);
    ASSERT_TRUE(verdict);
    EXPECT_EQ(story.verdict_at(), 10min);
    EXPECT_THAT(verdict->status.message(), HasSubstr(PhaseName(phase)));
  }
}

TEST(LivenessJudge, BeforeItsFirstStepHasEndedARankMayTakeLong) {
  Story story(3);
  story.rank(2) = {.phase = Phase::kForward, .step_us = 0};
  ASSERT_TRUE(story.Play(11min));
  EXPECT_EQ(story.verdict_at(), 10min);
}

TEST(LivenessJudge, ALongExchangeIsNotChargedToThePhaseAfterIt) {
  Story story(3);
  ASSERT_FALSE(story.Play(1min));
  story.rank(1) = {.phase = Phase::kUpdate, .counter = 2};
  EXPECT_FALSE(story.Play(9s));
}

TEST(LivenessJudge, AllSilentRanksAreNamedTogether) {
  Story story(4);
  ASSERT_FALSE(story.Play(5s));
  story.rank(1).heard = false;
  ASSERT_FALSE(story.Play(1s));  // its next heartbeat is that much later
  story.rank(3).heard = false;
  const auto verdict = story.Play(60s);
  ASSERT_TRUE(verdict);
  EXPECT_THAT(verdict->culprits, ElementsAre(1, 3));
  EXPECT_THAT(verdict->status.message(),
              AllOf(HasSubstr("rank 1 (node1, pid 71) has sent nothing for 10.0 s"),
                    HasSubstr("; rank 3 (node3, pid 73) has sent nothing for 9.0 s")));
}

TEST(LivenessJudge, OneSilentAndOneStalledAreBothNamed) {
  Story story(4);
  ASSERT_FALSE(story.Play(1s));
  story.rank(1).heard = false;
  story.rank(2) = {.phase = Phase::kForward, .counter = 2};
  const auto verdict = story.Play(60s);
  ASSERT_TRUE(verdict);
  EXPECT_THAT(verdict->culprits, ElementsAre(1, 2));
}

TEST(LivenessJudge, ARankThatHearsNoOtherIsItselfCutOff) {
  Story story(4);
  ASSERT_FALSE(story.Play(5s));
  for (int peer = 1; peer < 4; ++peer) story.rank(peer).heard = false;
  const auto verdict = story.Play(60s);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(story.verdict_at(), 15s);
  EXPECT_EQ(verdict->status.message(),
            "rank 0 (node0, pid 70), this rank, lost all the others at once: it has heard nothing "
            "for 10.0 s, and is itself cut off from the network");
  EXPECT_THAT(verdict->culprits, ElementsAre(0));
  EXPECT_TRUE(verdict->cut_off);
}

TEST(LivenessJudge, OfTwoTheOtherIsNamed) {
  Story story(2);
  story.rank(1).heard = false;
  const auto verdict = story.Play(60s);
  ASSERT_TRUE(verdict);
  EXPECT_THAT(verdict->culprits, ElementsAre(1));
  EXPECT_FALSE(verdict->cut_off);
}

TEST(LivenessJudge, RanksThatHaveEndedAreNotExpected) {
  Story story(4);
  story.rank(1).last = story.rank(2).last = true;
  ASSERT_FALSE(story.Play(2s));
  story.rank(1).heard = story.rank(2).heard = false;
  ASSERT_FALSE(story.Play(60s));
  story.rank(3).heard = false;
  const auto verdict = story.Play(60s);
  ASSERT_TRUE(verdict);
  EXPECT_THAT(verdict->culprits, ElementsAre(3));
}

// ---- what peers say -----------------------------------------------------------------------------

TEST(LivenessJudge, ACounterThatGoesBackIsAnError) {
  LivenessJudge judge(0, 2, {}, DescribeInStory, {});
  EXPECT_TRUE(judge.OnHeartbeat(1, {.counter = 5, .beats = {0, 1}}).ok());
  EXPECT_TRUE(judge.OnHeartbeat(1, {.counter = 5, .beats = {0, 3}}).ok());
  EXPECT_TRUE(judge.OnHeartbeat(1, {.counter = 4, .beats = {0, 2}}).ok()) << "it is older";
  const Status status = judge.OnHeartbeat(1, {.counter = 4, .beats = {0, 4}});
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "rank 1 (node1, pid 71) says that its counter went back from 5 to 4");
}

TEST(LivenessJudge, AHeartbeatOfAnotherWorldIsAnError) {
  LivenessJudge judge(0, 2, {}, DescribeInStory, {});
  EXPECT_EQ(judge.OnHeartbeat(1, {.beats = {1, 1, 1}}).message(),
            "rank 1 (node1, pid 71) tells of 3 ranks, not 2, or not of itself");
  EXPECT_FALSE(judge.OnHeartbeat(1, {.beats = {1, 0}}).ok());
}

// Of any rank: what waits for data to come has to know that some moves elsewhere.
TEST(LivenessJudge, TellsWhetherAnythingMovesAnywhere) {
  LivenessJudge judge(0, 3, {}, DescribeInStory, {});
  const uint64_t still = judge.moved();
  EXPECT_TRUE(judge.OnHeartbeat(1, {.beats = {0, 1, 1}}).ok());
  EXPECT_EQ(judge.moved(), still);
  EXPECT_TRUE(judge.OnHeartbeat(1, {.moved = 5, .beats = {0, 2, 1}}).ok());
  EXPECT_GT(judge.moved(), still);
}

TEST(LivenessJudge, WhoHasNotEndedIsNamedWithWhatItDoes) {
  LivenessJudge judge(0, 3, {}, DescribeInStory, {});
  EXPECT_TRUE(judge.OnHeartbeat(1, {.last = true, .beats = {0, 1, 0}}).ok());
  EXPECT_TRUE(
      judge.OnHeartbeat(2, {.phase = Phase::kCheckpoint, .step = 80, .beats = {0, 1, 1}}).ok());
  const Verdict verdict = judge.NotEnded({2}, 30s);
  EXPECT_EQ(verdict.status.message(),
            "rank 2 (node2, pid 72) has not ended its heartbeat within 30.0 s, and is in "
            "checkpoint of step 80");
  EXPECT_THAT(verdict.culprits, ElementsAre(2));
}

}  // namespace
}  // namespace ringtail
