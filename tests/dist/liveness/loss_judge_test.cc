// Worlds that outlive their losses, by the clock of a story: every rank has its judges, and the
// network between them is a matrix (dist/liveness/loss_judge.h).
#include "dist/liveness/loss_judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "core/random.h"
#include "tests/dist/liveness/judge_story.h"

namespace ringtail {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::chrono::milliseconds kWake{250};

// Limits as they are in use: an interval of 1 s, 10 s for the others.
class LossStory {
 public:
  struct Rank {
    Rank(int rank, int world_size)
        : judge(rank, world_size, {}, DescribeInStory, {}), losses(&judge) {}

    LivenessJudge judge;
    LossJudge losses;
    Phase phase = Phase::kForward;
    bool moving = true;
    bool stopped = false, dead = false;
    std::optional<Verdict> end;
    std::set<int> lost;
    // What it has not heard yet, because it is stopped.
    std::set<int> given_up_by;
    std::map<int, std::string> unheard_losses;
    uint64_t counter = 1;

    bool runs() const { return !stopped && !gone(); }
    bool gone() const { return dead || end.has_value(); }
  };

  explicit LossStory(int world_size) : way_(world_size, std::vector<bool>(world_size, true)) {
    for (int rank = 0; rank < world_size; ++rank) {
      ranks_.push_back(std::make_unique<Rank>(rank, world_size));
    }
  }

  Rank& rank(int rank) { return *ranks_[rank]; }
  int size() const { return static_cast<int>(ranks_.size()); }
  const std::string& end_of(int rank) { return ranks_[rank]->end.value().status.message(); }

  // ---- faults
  void Kill(int rank) {
    ranks_[rank]->dead = true;
    TellOfEnd(rank, "lost");
  }
  void Stop(int rank) { ranks_[rank]->stopped = true; }
  void Wake(int rank) {
    ranks_[rank]->stopped = false;
    ranks_[rank]->judge.Wake(now_);
    for (const int by : ranks_[rank]->given_up_by) HearGivenUp(rank, by);
    for (const auto& [peer, cause] : ranks_[rank]->unheard_losses) Lose(rank, peer, cause);
  }
  // Nothing arrives any more, and nothing says so.
  void Cut(int a, int b) { way_[a][b] = way_[b][a] = false; }
  void CutOneWay(int from, int to) { way_[from][to] = false; }
  void CutOff(int rank) {
    for (int other = 0; other < size(); ++other) Cut(rank, other);
  }
  // Both see it.
  void Break(int a, int b) {
    Cut(a, b);
    Lose(a, b, "the connection broke");
    Lose(b, a, "the connection broke");
  }

  void Play(std::chrono::milliseconds time) {
    for (std::chrono::milliseconds played{0}; played < time; played += kWake) {
      now_ += kWake;
      ++wakes_;
      for (const auto& rank : ranks_) {
        if (rank->runs()) rank->judge.Wake(now_);
        if (rank->runs() && rank->moving) ++rank->counter;
      }
      if (wakes_ % 4 == 0) Beat();
      for (int rank = 0; rank < size(); ++rank) {
        if (ranks_[rank]->runs()) Judge(rank);
      }
    }
  }

 private:
  void Beat() {
    for (int from = 0; from < size(); ++from) {
      Rank& sender = *ranks_[from];
      if (!sender.runs()) continue;
      const Heartbeat told =
          sender.judge.OnOwnProgress({.phase = sender.phase, .counter = sender.counter, .step = 17},
                                     {.step_us = 300'000, .compute_us = 0});
      for (int to = 0; to < size(); ++to) {
        Rank& receiver = *ranks_[to];
        const bool arrives = way_[from][to] && receiver.runs() && !sender.lost.contains(to) &&
                             !receiver.lost.contains(from);
        if (to == from || !arrives) continue;
        receiver.judge.OnArrival(from);
        EXPECT_TRUE(receiver.judge.OnHeartbeat(from, told).ok());
      }
    }
  }

  void Judge(int rank) {
    const LossVerdict verdict = ranks_[rank]->losses.Judge();
    if (verdict.end) return End(rank, *verdict.end);
    for (const auto& [peer, cause] : verdict.lost) {
      GiveUp(rank, peer, cause.message());
      if (!ranks_[rank]->runs()) return;
    }
  }

  void GiveUp(int rank, int peer, const std::string& cause) {
    Lose(rank, peer, cause);
    if (!way_[rank][peer] || ranks_[peer]->gone()) return;
    if (ranks_[peer]->stopped) {
      ranks_[peer]->given_up_by.insert(rank);
    } else {
      HearGivenUp(peer, rank);
    }
  }

  // As the transport ends, and as ProgressMonitor explains it.
  void HearGivenUp(int rank, int by) {
    if (ranks_[rank]->gone()) return;
    const Status told(StatusCode::kUnavailable, "given up by " + std::to_string(by));
    End(rank, ranks_[rank]->judge.OwnFault().value_or(Verdict{.status = told, .culprits = {}}));
  }

  void Lose(int rank, int peer, const std::string& cause) {
    Rank& loser = *ranks_[rank];
    if (loser.stopped) loser.unheard_losses.emplace(peer, cause);
    if (loser.stopped || loser.gone() || !loser.lost.insert(peer).second) return;
    const auto end = loser.losses.OnLost(peer, {StatusCode::kUnavailable, cause});
    if (end) End(rank, *end);
  }

  void End(int rank, const Verdict& verdict) {
    ranks_[rank]->end = verdict;
    TellOfEnd(rank, "stopped: " + verdict.status.message());
  }

  void TellOfEnd(int rank, const std::string& cause) {
    for (int other = 0; other < size(); ++other) {
      if (other != rank && way_[rank][other]) Lose(other, rank, cause);
    }
  }

  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<std::vector<bool>> way_;
  LivenessJudge::TimePoint now_;
  int wakes_ = 0;
};

// That these are lost to all others, which continue.
void ExpectLost(LossStory* story, const std::set<int>& lost) {
  for (int rank = 0; rank < story->size(); ++rank) {
    if (lost.contains(rank)) continue;
    EXPECT_FALSE(story->rank(rank).gone()) << rank << ": " << story->end_of(rank);
    EXPECT_EQ(story->rank(rank).lost, lost) << "of rank " << rank;
  }
}

TEST(LossJudgeTest, ADeadRankIsLostAndTheOthersContinue) {
  LossStory story(4);
  story.Play(5s);
  story.Kill(2);
  ExpectLost(&story, {2});
  story.Play(100s);
  story.Kill(3);
  story.Kill(1);
  story.Play(100s);
  ExpectLost(&story, {1, 2, 3});  // and rank 0 is the last
}

TEST(LossJudgeTest, WhoWaitsForABoundOrAnAnswerIsNeverBlamed) {
  LossStory story(3);
  for (int rank = 0; rank < 3; ++rank) story.rank(rank).moving = false;
  story.rank(0).phase = story.rank(1).phase = Phase::kBlocked;
  story.rank(2).phase = Phase::kExchange;
  story.Play(1h);
  ExpectLost(&story, {});
}

TEST(LossJudgeTest, AStoppedRankIsLostAfterTheLimitAndEndsWhenItWakes) {
  LossStory story(4);
  story.Play(5s);
  story.Stop(2);
  story.Play(9s);
  ExpectLost(&story, {});
  story.Play(3s);
  ExpectLost(&story, {2});
  story.Wake(2);
  EXPECT_THAT(story.end_of(2), HasSubstr("rank 2 (node2, pid 72), this process, was stopped for"));
  story.Play(100s);
  ExpectLost(&story, {2});
}

TEST(LossJudgeTest, OneThatHangsIsToBlameAndNotThoseThatWaitForIt) {
  LossStory story(4);
  for (int rank = 0; rank < 4; ++rank) {
    story.rank(rank).phase = Phase::kBlocked;
    story.rank(rank).moving = false;
  }
  story.rank(1).phase = Phase::kBackward;
  story.Play(12s);
  ExpectLost(&story, {1});
  EXPECT_THAT(story.end_of(1), HasSubstr("rank 1 (node1, pid 71) is alive, but its training thread "
                                         "has not moved for 10"));
}

TEST(LossJudgeTest, ARankThatIsCutOffIsLostAndSaysSo) {
  LossStory story(4);
  story.Play(5s);
  story.CutOff(3);
  story.Play(13s);
  ExpectLost(&story, {3});
  EXPECT_THAT(story.end_of(3), HasSubstr("rank 3 (node3, pid 73), this rank, lost all the others"));
  EXPECT_TRUE(story.rank(3).end->cut_off);
}

TEST(LossJudgeTest, OfTwoThatHaveLostEachOtherTheHigherLeaves) {
  for (const std::string fault : {"cut", "one way", "other way", "broken"}) {
    SCOPED_TRACE(fault);
    LossStory story(4);
    story.Play(5s);
    if (fault == "cut") story.Cut(1, 2);
    if (fault == "one way") story.CutOneWay(1, 2);
    if (fault == "other way") story.CutOneWay(2, 1);
    if (fault == "broken") story.Break(2, 1);
    story.Play(40s);
    ExpectLost(&story, {2});
    EXPECT_TRUE(story.rank(2).gone());
  }
}

// A rank that one has seen dying, and rank 0 not yet, is no quarrel.
TEST(LossJudgeTest, ADeathThatIsSeenLateIsNoQuarrel) {
  LossStory story(4);
  story.Play(5s);
  story.Cut(0, 3);
  story.Kill(3);  // ranks 1 and 2 see it
  story.Play(13s);
  ExpectLost(&story, {3});
}

TEST(LossJudgeTest, WithoutRankZeroAllEnd) {
  LossStory story(3);
  story.Play(5s);
  story.Kill(0);
  for (const int rank : {1, 2}) {
    ASSERT_TRUE(story.rank(rank).end);
    EXPECT_THAT(story.rank(rank).end->culprits, ElementsAre(0));
  }

  LossStory stopped(4);
  stopped.Play(5s);
  stopped.Stop(0);
  stopped.Play(13s);
  for (const int rank : {1, 2, 3}) {
    EXPECT_THAT(stopped.end_of(rank), HasSubstr("rank 0 (node0, pid 70) has sent nothing"));
  }
  stopped.Wake(0);
  EXPECT_THAT(stopped.end_of(0), HasSubstr("rank 0 (node0, pid 70), this process, was stopped"));
}

TEST(LossJudgeTest, RankZeroThatHearsNoOtherIsCutOffItself) {
  LossStory story(4);
  story.Play(5s);
  story.CutOff(0);
  story.Play(20s);
  EXPECT_TRUE(story.rank(0).end->cut_off);
  for (const int rank : {1, 2, 3}) EXPECT_TRUE(story.rank(rank).gone());
}

TEST(LossJudgeTest, AJobThatIsStoppedAsAWholeContinues) {
  LossStory story(4);
  story.Play(5s);
  for (int rank = 0; rank < 4; ++rank) story.Stop(rank);
  story.Play(60s);
  for (int rank = 0; rank < 4; ++rank) story.Wake(rank);
  story.Play(60s);
  ExpectLost(&story, {});
}

// Up to three faults of ranks other than 0, at any time: in the end all that are left agree, who
// had nothing to do with any fault is left, and who is dead or stopped is not.
TEST(LossJudgeTest, RandomStoriesEndInAgreement) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Rng random(RngKey(21).With(seed));
    const int world_size = 3 + static_cast<int>(random.Below(4));
    LossStory story(world_size);
    story.Play(5s);
    std::set<int> touched, gone;
    const auto any = [&] { return 1 + static_cast<int>(random.Below(world_size - 1)); };
    for (uint64_t faults = random.Below(4); faults > 0; --faults) {
      const int a = any(), b = any();
      switch (random.Below(6)) {
        case 0:
          story.Kill(a);
          gone.insert(a);
          break;
        case 1:
          story.Stop(a);
          gone.insert(a);
          break;
        case 2:
          story.rank(a).moving = false;
          gone.insert(a);
          break;
        case 3:
          if (a != b) story.Cut(a, b);
          break;
        case 4:
          if (a != b) story.Break(a, b);
          break;
        case 5:
          if (a != b) story.CutOneWay(a, b);
          break;
      }
      touched.insert({a, b});
      story.Play(kWake * static_cast<int>(random.Below(60)));
    }
    story.Play(90s);
    if (story.rank(0).gone()) {  // only if all others had fallen silent
      EXPECT_TRUE(story.rank(0).end->cut_off);
      EXPECT_EQ(gone.size(), world_size - 1);
      continue;
    }
    for (int rank = 1; rank < world_size; ++rank) {
      const bool lost = story.rank(0).lost.contains(rank);
      EXPECT_TRUE(lost || !gone.contains(rank)) << rank;
      EXPECT_TRUE(!lost || touched.contains(rank)) << rank;
      if (!lost) {
        EXPECT_FALSE(story.rank(rank).gone()) << story.end_of(rank);
        EXPECT_EQ(story.rank(rank).lost, story.rank(0).lost) << rank;
      }
    }
  }
}

}  // namespace
}  // namespace ringtail
