// Which rank hangs, by the clock of a story (dist/liveness/liveness_judge.h).
#include "dist/liveness/liveness_judge.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringtail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Describe(int rank) {
  return fmt::format("rank {} (node{}, pid 7{})", rank, rank, rank);
}

// Rank 0 of a world, as time passes. Limits are as they are in use: 1 s, 10 s, 10 s, 10 min.
class Story {
 public:
  struct Character {
    Phase phase = Phase::kExchange;
    uint64_t step_us = 300'000;
    bool heard = true;    // its heartbeats come, and are heard by others
    bool reaches = true;  // them and data: to this rank
    bool moving = false;  // its counter moves
    bool last = false;
    uint64_t counter = 1;
    milliseconds unchanged{0};
  };

  explicit Story(int world_size, const LivenessLimits& limits = {})
      : ranks_(world_size), judge_(0, world_size, limits, Describe, {}) {}

  Character& rank(int rank) { return ranks_[rank]; }
  LivenessJudge& judge() { return judge_; }
  bool data_moves = false;                        // between the others
  void Skip(milliseconds time) { now_ += time; }  // this process does nothing meanwhile

  // Until the first verdict, or for so long. A heartbeat of each rank comes once a second.
  std::optional<Verdict> Play(milliseconds time) {
    constexpr milliseconds kWake{250};
    for (milliseconds played{0}; played < time; played += kWake) {
      now_ += kWake;
      judge_.Wake(now_);
      ++wakes_;
      for (Character& rank : ranks_) {
        rank.unchanged = rank.moving ? 0ms : rank.unchanged + kWake;
        rank.counter += rank.moving;
      }
      TellOwn();
      if (wakes_ % 4 == 0) TellOthers();
      if (auto verdict = judge_.Judge()) {
        since_start_ = now_.time_since_epoch();
        return verdict;
      }
    }
    return {};
  }

  // When the verdict fell.
  milliseconds verdict_at() const { return std::chrono::duration_cast<milliseconds>(since_start_); }

 private:
  void TellOwn() {
    const Character& own = ranks_[0];
    (void)judge_.OnOwnProgress({.phase = own.phase, .counter = own.counter, .step = 17},
                               {.step_us = own.step_us, .compute_us = 0});
  }
  void TellOthers() {
    const uint32_t beat = wakes_;
    for (size_t peer = 1; peer < ranks_.size(); ++peer) {
      if (ranks_[peer].heard) beats_[peer] = beat;
    }
    moved_ += data_moves;
    for (int peer = 1; peer < static_cast<int>(ranks_.size()); ++peer) {
      const Character& rank = ranks_[peer];
      if (!rank.heard || !rank.reaches) continue;
      judge_.OnArrival(peer);
      const Heartbeat told = {.phase = rank.phase,
                              .last = rank.last,
                              .step = 17,
                              .counter = rank.counter,
                              .unchanged_ms = static_cast<uint64_t>(rank.unchanged.count()),
                              .step_us = rank.step_us,
                              .moved = moved_,
                              .beats = beats_};
      EXPECT_TRUE(judge_.OnHeartbeat(peer, told).ok());
    }
  }

  std::vector<Character> ranks_;
  LivenessJudge judge_;
  std::vector<uint32_t> beats_ = std::vector<uint32_t>(ranks_.size());
  uint64_t moved_ = 0;
  LivenessJudge::TimePoint now_;
  LivenessJudge::TimePoint::duration since_start_{};
  int wakes_ = 0;
};

TEST(LivenessJudge, NobodyIsBlamedWhileAllMove) {
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

// ---- slow and broken ways -----------------------------------------------------------------------

TEST(LivenessJudge, PiecesOfDataAreSignsOfLife) {
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
TEST(LivenessJudge, WhomAThirdRankHearsLives) {
  Story story(3);
  ASSERT_FALSE(story.Play(2s));
  story.data_moves = true;
  story.rank(1).reaches = false;
  EXPECT_FALSE(story.Play(25s));
  story.rank(1).reaches = true;
  EXPECT_FALSE(story.Play(60s));
}

TEST(LivenessJudge, WhoIsStoppedIsNamedAlthoughDataMoves) {
  Story story(3);
  story.data_moves = true;
  ASSERT_FALSE(story.Play(5s));
  story.rank(1).heard = false;
  const auto verdict = story.Play(60s);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(story.verdict_at(), 15s);
  EXPECT_THAT(verdict->culprits, ElementsAre(1));
}

TEST(LivenessJudge, ABrokenWayFromARankThatLivesIsNamed) {
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

TEST(LivenessJudge, WhileDataMovesAWayMayBeSilentForThreeTimesAsLong) {
  Story story(3);
  story.data_moves = true;
  ASSERT_FALSE(story.Play(5s));
  story.rank(2).reaches = false;
  ASSERT_TRUE(story.Play(60s));
  EXPECT_EQ(story.verdict_at(), 35s);
}

// Heartbeats come on their own connection, but that of the data has died without a word.
TEST(LivenessJudge, AWayOfDataMayBreakAlone) {
  LivenessJudge judge(0, 2, {}, Describe, {});
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
TEST(LivenessJudge, WhoIsCutOffDoesNotBlameTheWayThatWasSilentFirst) {
  LivenessJudge judge(0, 3, {}, Describe, {});
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
TEST(LivenessJudge, WhoseOthersAreStillJoiningIsNotCutOff) {
  Story story(3, kJoining);
  story.rank(1).heard = story.rank(2).heard = false;
  EXPECT_FALSE(story.Play(39s));
  const auto verdict = story.Play(2s);
  ASSERT_TRUE(verdict) << "and if no rank says anything?";
  EXPECT_TRUE(verdict->cut_off);
}

TEST(LivenessJudge, WhoHasNotBegunInTimeIsNamed) {
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

TEST(LivenessJudge, WhoseOthersHaveBegunIsCutOffAsSoonAsEver) {
  Story story(3, kJoining);
  ASSERT_FALSE(story.Play(2s));
  story.rank(1).heard = story.rank(2).heard = false;
  const auto verdict = story.Play(60s);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(story.verdict_at(), 12s);
  EXPECT_TRUE(verdict->cut_off);
}

TEST(LivenessJudge, WhoBeginsLateHasAllTheTimeToBeHeard) {
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

TEST(LivenessJudge, AShortStopOfThisProcessBlamesNobody) {
  Story story(4);
  for (int i = 0; i < 20; ++i) {
    ASSERT_FALSE(story.Play(3s));
    story.Skip(7s);
  }
  EXPECT_FALSE(story.judge().OwnFault());
}

TEST(LivenessJudge, AfterALongStopTheEndOfTheWorldIsThisRanksFault) {
  Story story(4);
  ASSERT_FALSE(story.Play(5s));
  story.Skip(12s);
  ASSERT_FALSE(story.Play(250ms));
  const auto verdict = story.judge().OwnFault();
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->status.message(),
            "rank 0 (node0, pid 70), this process, was stopped for 12.2 s; the others have gone on "
            "without it");
  EXPECT_THAT(verdict->culprits, ElementsAre(0));
}

TEST(LivenessJudge, SilenceAfterALongStopIsThisRanksFault) {
  Story story(2);
  ASSERT_FALSE(story.Play(5s));
  story.rank(1).heard = false;
  story.Skip(12s);
  const auto verdict = story.Play(60s);
  ASSERT_TRUE(verdict);
  EXPECT_THAT(verdict->status.message(), HasSubstr("this process, was stopped"));
  EXPECT_THAT(verdict->culprits, ElementsAre(0));
}

TEST(LivenessJudge, IfAllWereStoppedTogetherNothingIsWrong) {
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

// ---- what peers say -----------------------------------------------------------------------------

TEST(LivenessJudge, ACounterThatGoesBackIsAnError) {
  LivenessJudge judge(0, 2, {}, Describe, {});
  EXPECT_TRUE(judge.OnHeartbeat(1, {.counter = 5, .beats = {0, 1}}).ok());
  EXPECT_TRUE(judge.OnHeartbeat(1, {.counter = 5, .beats = {0, 3}}).ok());
  EXPECT_TRUE(judge.OnHeartbeat(1, {.counter = 4, .beats = {0, 2}}).ok()) << "it is older";
  const Status status = judge.OnHeartbeat(1, {.counter = 4, .beats = {0, 4}});
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "rank 1 (node1, pid 71) says that its counter went back from 5 to 4");
}

TEST(LivenessJudge, AHeartbeatOfAnotherWorldIsAnError) {
  LivenessJudge judge(0, 2, {}, Describe, {});
  EXPECT_EQ(judge.OnHeartbeat(1, {.beats = {1, 1, 1}}).message(),
            "rank 1 (node1, pid 71) tells of 3 ranks, not 2, or not of itself");
  EXPECT_FALSE(judge.OnHeartbeat(1, {.beats = {1, 0}}).ok());
}

// Of any rank: what waits for data to come has to know that some moves elsewhere.
TEST(LivenessJudge, TellsWhetherAnythingMovesAnywhere) {
  LivenessJudge judge(0, 3, {}, Describe, {});
  const uint64_t still = judge.moved();
  EXPECT_TRUE(judge.OnHeartbeat(1, {.beats = {0, 1, 1}}).ok());
  EXPECT_EQ(judge.moved(), still);
  EXPECT_TRUE(judge.OnHeartbeat(1, {.moved = 5, .beats = {0, 2, 1}}).ok());
  EXPECT_GT(judge.moved(), still);
}

TEST(LivenessJudge, WhoHasNotEndedIsNamedWithWhatItDoes) {
  LivenessJudge judge(0, 3, {}, Describe, {});
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
