// How rounds end, and the run: for the rank that keeps it, and for others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <optional>
#include <vector>

#include "apps/trainer/asynchronous/worker_round.h"
#include "dist/parameter_server/presets.h"
#include "tests/apps/trainer/asynchronous/served_rank.h"
#include "tests/apps/trainer/thread_world.h"

namespace ringtail {
namespace {

using testing::HasSubstr;
using Kind = StepWork::Kind;

const std::vector<float> kGradient = {4, 8, 12, 16, 20};
const std::vector<float> kOnes = {1, 1, 1, 1, 1}, kAfterOne = {0, -1, -2, -3, -4},
                         kAfterTwo = {-1, -3, -5, -7, -9};

// With overlap the weights that were pulled ahead are older, and are not those of the next round.
TEST(WorkerRoundEndTest, ARoundBeginsWithTheWeightsThatTheLastEndedWith) {
  TrainingWorld alone;
  for (const bool overlap : {false, true}) {
    ServedRank rank(&alone, {.rows = 8, .round = {.overlap = overlap}});
    rank.Open(4);
    EXPECT_EQ(rank.Next().next, std::nullopt);
    rank.Push(kGradient);
    EXPECT_EQ(rank.Next().kind, Kind::kNothing);
    EXPECT_TRUE(rank.round()->over());
    EXPECT_EQ(rank.round()->end().kind, MessageKind::kRoundOver);
    EXPECT_EQ(rank.round()->end().reason, 0);
    rank.Open(8);
    rank.round()->Restart();
    EXPECT_FALSE(rank.round()->over());
    EXPECT_EQ(rank.Next().ticket, (Ticket{4, 4}));
    EXPECT_EQ(rank.model(), kAfterOne) << overlap;
  }
}

// A snapshot changes weights, too, where it applies a group that is not complete.
TEST(WorkerRoundEndTest, ASnapshotHasWhatWasPushedOnAllServers) {
  TrainingWorld alone;
  const AsynchronousRule pairs{.grouping = {.pushes = 2}};
  ServedRank rank(&alone, {.rules = {pairs, pairs}, .rows = 8});
  rank.Open(4);
  rank.Next();
  rank.Push(kGradient);
  EXPECT_EQ(rank.Served(), kOnes);
  EXPECT_EQ(rank.Next().kind, Kind::kNothing);
  EXPECT_EQ(rank.Snapshot(), kAfterOne);
  EXPECT_EQ(rank.Served(), kAfterOne);
  rank.Open(8);
  rank.round()->Restart();
  rank.Next();
  EXPECT_EQ(rank.model(), kAfterOne) << "what was pulled before is dropped";
}

TEST(WorkerRoundEndTest, ASignalEndsTheRound) {
  TrainingWorld alone;
  ServedRank rank(&alone, {});
  EXPECT_EQ(rank.Next().next, (Ticket{4, 4}));
  rank.Push(kGradient, /*finite=*/true, /*signal=*/15);
  const StepWork last = rank.Next();
  EXPECT_EQ(last.ticket, (Ticket{4, 4})) << "it was given out before";
  EXPECT_EQ(last.next, std::nullopt);
  rank.Push(kGradient);
  EXPECT_EQ(rank.Next().kind, Kind::kNothing);
  EXPECT_TRUE(rank.round()->over());
  EXPECT_EQ(rank.round()->end().reason, 15);
  rank.Open(100);
  rank.round()->Restart();
  EXPECT_EQ(rank.Next(/*signal=*/2).kind, Kind::kNothing) << "before any ticket";
  EXPECT_EQ(rank.round()->end().reason, 2);
}

// The rank that keeps the run, where it computes nothing: a second without news is no end.
TEST(WorkerRoundEndTest, ARankThatOnlyServesHearsOfTheEndOfARound) {
  TrainingWorld alone;
  ServedRank rank(&alone, {.rows = 8, .round = {.computes = false}});
  rank.Open(4);
  rank.JoinAnother();  // with rows 0 to 3
  rank.PushAsAnother(/*server=*/0, /*first_row=*/0, /*gradient=*/4);
  EXPECT_EQ(rank.Next().kind, Kind::kNothing);
  EXPECT_TRUE(rank.round()->over());
  EXPECT_EQ(rank.round()->end().reason, 0);
  rank.Open(8);
  rank.round()->Restart();
  EXPECT_EQ(rank.Next().kind, Kind::kNothing);
  EXPECT_FALSE(rank.round()->over());
  EXPECT_EQ(rank.Next(/*signal=*/15).kind, Kind::kNothing);
  EXPECT_TRUE(rank.round()->over());
  EXPECT_EQ(rank.round()->end().reason, 15);
  EXPECT_THAT(rank.model(), testing::Each(0)) << "it pulls nothing";
}

TEST(WorkerRoundEndTest, OtherRanksHearOfTheEndOfTheRun) {
  OnTrainingRanks(2, [](TrainingWorld* world) {
    ServedRank rank(world, {.round = {.computes = false}});
    while (!rank.round()->over()) {
      EXPECT_EQ(rank.Next(/*signal=*/world->leads() ? 0 : 15).kind, Kind::kNothing);
    }
    const ServerMessage end = rank.round()->end();
    EXPECT_EQ(end.reason, 15);
    EXPECT_EQ(end.rows, 1) << "who has stopped it";
    if (world->leads()) {
      EXPECT_EQ(end.kind, MessageKind::kRoundOver);
      rank.server(0)->Run([](ShardService* service) {
        return service->Close({.kind = MessageKind::kEnd, .first = 7, .norm = 0.5});
      });
    } else {
      EXPECT_EQ(end.kind, MessageKind::kEnd);
      EXPECT_EQ(end.first, 7);
      EXPECT_EQ(end.norm, 0.5);
    }
  });
}

// Three tickets a round for two workers, as after the death of a third: in the second turn rank 1 has
// no images, and says so in place of a push.
TEST(WorkerRoundEndTest, WhereAllWaitForAllNoOneWaitsForAWorkerWithoutImages) {
  OnTrainingRanks(2, [](TrainingWorld* world) {
    ServedRank rank(world, {.rules = {PublishedRule(AsynchronousConfig::SYNCHRONOUS)}, .rows = 24});
    int pushes = 0;
    if (world->leads()) rank.Open(12);
    for (int round = 0; round < (world->leads() ? 2 : 1); ++round) {
      while (rank.Next().kind == Kind::kTicket) {
        rank.Push(kGradient);
        ++pushes;
      }
      EXPECT_TRUE(rank.round()->over());
      if (!world->leads()) break;
      rank.Snapshot();
      rank.Open(24);
      rank.round()->Restart();
    }
    EXPECT_EQ(pushes, world->leads() ? 4 : 2);
    if (!world->leads()) return;
    EXPECT_EQ(rank.Served(), std::vector<float>({-3, -7, -11, -15, -19})) << "four means of 1 to 5";
    EXPECT_EQ(rank.TakeCounts(0).staleness.max(), 0);
    rank.server(0)->Run(
        [](ShardService* service) { return service->Close({.kind = MessageKind::kEnd}); });
  });
}

// Rank 1 may not be ahead of rank 0, which has no images: they would wait for each other.
TEST(WorkerRoundEndTest, AWorkerWithoutATicketHoldsNoOther) {
  std::latch taken(1);
  OnTrainingRanks(2, [&](TrainingWorld* world) {
    ServedRank rank(
        world, {.rules = {{.admission = {.bound = 0}}}, .rows = 8, .round = {.bounded = true}});
    if (world->leads()) {
      taken.wait();
      EXPECT_EQ(rank.Next().kind, Kind::kNothing);
      EXPECT_TRUE(rank.round()->over());
      rank.Leave();
      EXPECT_EQ(rank.Served(), kAfterTwo);
      return;
    }
    EXPECT_EQ(rank.Next().next, (Ticket{4, 4}));
    taken.count_down();
    rank.Push(kGradient);
    EXPECT_EQ(rank.Next().ticket, (Ticket{4, 4}));
    EXPECT_EQ(rank.model(), kAfterOne);
    rank.Push(kGradient);
  });
}

TEST(WorkerRoundEndTest, AWorkerThatHasLostItsServerSaysWhy) {
  OnTrainingRanks(2, [](TrainingWorld* world) {
    if (world->leads()) return world->Abort(DataLoss("its disk is gone"));
    ServedRank rank(world, {});
    EXPECT_THAT(rank.round()->Next(0).status().message(), HasSubstr("its disk is gone"));
    EXPECT_TRUE(world->lost());
  });
}

}  // namespace
}  // namespace ringtail
