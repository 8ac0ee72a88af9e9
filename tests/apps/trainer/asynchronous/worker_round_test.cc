// What a worker makes of its servers' answers: weights, tickets and refusals.
#include "apps/trainer/asynchronous/worker_round.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "dist/parameter_server/presets.h"
#include "tests/apps/trainer/asynchronous/served_rank.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::Pointwise;
using Kind = StepWork::Kind;

const std::vector<float> kGradient = {4, 8, 12, 16, 20};
const std::vector<float> kOnes = {1, 1, 1, 1, 1}, kAfterOne = {0, -1, -2, -3, -4},
                         kAfterTwo = {-1, -3, -5, -7, -9};

TEST(WorkerRoundTest, NextGivesWeightsATicketAndTheOneAfterIt) {
  TrainingWorld alone;
  for (const size_t shards : {1, 2}) {
    ServedRank rank(&alone, {.rules = std::vector<AsynchronousRule>(shards), .rows = 10});
    const StepWork first = rank.Next();
    EXPECT_EQ(first.kind, Kind::kTicket);
    EXPECT_EQ(first.ticket, (Ticket{0, 4}));
    EXPECT_EQ(first.next, (Ticket{4, 4}));
    EXPECT_EQ(rank.model(), kOnes);
    rank.Push(kGradient);
    EXPECT_EQ(rank.Served(), kAfterOne) << "each shard has its part of the gradient";
    const StepWork second = rank.Next();
    EXPECT_EQ(second.ticket, (Ticket{4, 4}));
    EXPECT_EQ(second.next, (Ticket{8, 2}));
    EXPECT_EQ(rank.model(), kAfterOne) << shards << " shards";
    EXPECT_EQ(rank.round()->version(), 1);
    EXPECT_EQ(rank.round()->images(), 4);
    EXPECT_FALSE(rank.round()->over());
    const UpdateCounts counts = rank.TakeCounts(0);
    EXPECT_EQ(counts.rows, ServedRank::kRows);
    EXPECT_EQ(counts.loss_sum, ServedRank::kLoss);
    EXPECT_EQ(counts.correct, ServedRank::kCorrect);
  }
}

// What is sent is put into memory that another shard's gradient of the same size was in.
TEST(WorkerRoundTest, GapsBetweenParametersHaveNoGradient) {
  TrainingWorld alone;
  ServedRank rank(&alone, {.rules = {{}, {}}});
  for (int i = 0; i < 3; ++i) {
    rank.Next();
    rank.Push(kGradient);
  }
  EXPECT_THAT(rank.block(0).subspan(3), testing::Each(1.0f));
  EXPECT_THAT(rank.block(1).subspan(2), testing::Each(1.0f));
}

// `finite` alone says so: a loss may be infinite though its gradient is not.
TEST(WorkerRoundTest, ImagesOfAPushThatIsNotFiniteComeAgain) {
  TrainingWorld alone;
  for (const size_t shards : {1, 2}) {
    ServedRank rank(&alone, {.rules = std::vector<AsynchronousRule>(shards), .rows = 8});
    EXPECT_EQ(rank.Next().ticket, (Ticket{0, 4}));
    rank.Push(kGradient, /*finite=*/false);
    EXPECT_EQ(rank.Served(), kOnes);
    const StepWork second = rank.Next();
    EXPECT_EQ(second.ticket, (Ticket{4, 4}));
    EXPECT_EQ(second.next, (Ticket{0, 4}));
    rank.Push(kGradient);
    const StepWork again = rank.Next();
    EXPECT_EQ(again.ticket, (Ticket{0, 4}));
    EXPECT_EQ(again.next, std::nullopt);
    rank.Push(kGradient);
    EXPECT_EQ(rank.Next().kind, Kind::kNothing);
    EXPECT_TRUE(rank.round()->over());
    EXPECT_EQ(rank.TakeCounts(0).refused, 1);
  }
}

// They would count twice on the server that has taken them.
TEST(WorkerRoundTest, ImagesThatOneServerHasTakenDoNotComeAgain) {
  TrainingWorld alone;
  ServedRank rank(&alone, {.rules = {{.admission = {.discard_after = 1}}, {}}, .rows = 12});
  rank.Next();
  rank.JoinAnother();  // with rows 8 to 11
  rank.PushAsAnother(/*server=*/0, /*first_row=*/8, /*gradient=*/4);
  rank.Push(kGradient);
  EXPECT_THAT(rank.Served(), ElementsAre(0, 0, 0, -3, -4)) << "too old for the first alone";
  const StepWork second = rank.Next();
  EXPECT_EQ(second.ticket, (Ticket{4, 4}));
  EXPECT_EQ(second.next, std::nullopt);
  rank.Push(kGradient);
  EXPECT_EQ(rank.Next().kind, Kind::kNothing);
}

TEST(WorkerRoundTest, WithOverlapWeightsAreAStepOlder) {
  TrainingWorld alone;
  for (const bool overlap : {false, true}) {
    ServedRank rank(&alone, {.round = {.overlap = overlap}});
    rank.Next();
    rank.Push(kGradient);
    rank.Next();
    EXPECT_EQ(rank.model(), overlap ? kOnes : kAfterOne);
    rank.Push(kGradient);
    rank.Next();
    EXPECT_EQ(rank.model(), overlap ? kAfterOne : kAfterTwo);
    // The mean of two pushes, of which the first is never late.
    EXPECT_EQ(rank.TakeCounts(0).staleness.Mean(), overlap ? 0.5 : 0);
  }
}

// Where all wait for all, batch norm continues with the mean of all; elsewhere with its own.
TEST(WorkerRoundTest, RunningStatisticsComeBackWhereTheyAreShared) {
  TrainingWorld alone;
  for (const auto rule : {AsynchronousConfig::SYNCHRONOUS, AsynchronousConfig::ASYNCHRONOUS}) {
    ServedRank rank(&alone, {.rules = {PublishedRule(rule)}});
    rank.Next();
    *rank.mean() = 7;
    rank.Push(kGradient);
    *rank.mean() = 3;
    rank.Next();
    EXPECT_EQ(*rank.mean(), rule == AsynchronousConfig::SYNCHRONOUS ? 7 : 3);
  }
}

TEST(WorkerRoundTest, WeightsThatTravelAsBf16AreRoundedToIt) {
  TrainingWorld alone;
  ServedRank rank(&alone, {.round = {.pull = AsynchronousConfig::BF16}});
  rank.Next();
  EXPECT_EQ(rank.model(), kOnes);
  // bf16 has 8 bits of a weight: below 1 steps of 2^-8.
  constexpr float kStep = 1.0F / 256, kLess = kStep / 16;
  rank.Push({4 * kStep, 4 * (kStep + kLess), 4 * (kStep - kLess), 4, 12});
  EXPECT_THAT(rank.Served(), ElementsAre(1 - kStep, 1 - kStep - kLess, 1 - kStep + kLess, 0, -2));
  rank.Next();
  EXPECT_THAT(rank.model(), ElementsAre(1 - kStep, 1 - kStep, 1 - kStep, 0, -2));
}

// A key at first, then what has changed since; off by 1/254 of the largest change, which is 10.
TEST(WorkerRoundTest, WeightsThatTravelAsDifferencesAreThoseOfTheServer) {
  TrainingWorld alone;
  ServedRank rank(&alone, {.round = {.pull = AsynchronousConfig::DELTA}});
  for (int64_t push = 0; push < 3; ++push) {
    rank.Next();
    EXPECT_THAT(rank.model(), Pointwise(testing::FloatNear(10.0F / 254), rank.Served())) << push;
    rank.Push(kGradient);
  }
}

TEST(WorkerRoundTest, WhatACodedGradientLeavesOutIsSentLater) {
  TrainingWorld alone;
  ServedRank rank(&alone, {.compression = "min_elements: 2 scheme { top_k { density: 0.33 } }"});
  rank.Next();
  rank.Push(kGradient);
  EXPECT_THAT(rank.Served(), ElementsAre(1, 1, -2, -3, -4)) << "the largest weight, all biases";
  EXPECT_THAT(rank.residual(), ElementsAre(4, 8, 0));
  rank.Next();
  rank.Push({NAN, 1, 1, 1, 1}, /*finite=*/false);
  EXPECT_THAT(rank.Served(), ElementsAre(1, 1, -2, -3, -4));
  EXPECT_THAT(rank.residual(), ElementsAre(4, 8, 0)) << "a NaN would be in all that follow";
  rank.Next();
  rank.Push({0, 0, 0, 0, 0});
  EXPECT_THAT(rank.Served(), ElementsAre(1, -1, -2, -3, -4));
}

// A pull that waits is answered without weights then, which is not the end of the run.
TEST(WorkerRoundTest, AWorkerThatWasAwayPullsAgain) {
  TrainingWorld alone;
  ServedRank rank(&alone, {.rules = {{.admission = {.bound = 0}}}, .rows = 12});
  rank.JoinAnother();  // with rows 0 to 3
  EXPECT_EQ(rank.Next().ticket, (Ticket{4, 4}));
  rank.Push(kGradient);  // its pull waits for the other worker
  rank.round()->GoAway();
  rank.PushAsAnother(/*server=*/0, /*first_row=*/0, /*gradient=*/4);
  EXPECT_EQ(rank.Next().ticket, (Ticket{8, 4}));
  EXPECT_THAT(rank.model(), ElementsAre(-1, -2, -3, -4, -5));
  ASSERT_NE(rank.round()->end().kind, MessageKind::kEnd);
  rank.Push(kGradient);
  EXPECT_EQ(rank.Next().kind, Kind::kNothing);
}

TEST(WorkerRoundTest, BlockedSecondsAreThoseSinceTheLastCall) {
  TrainingWorld alone;
  ServedRank rank(&alone, {});
  EXPECT_EQ(rank.round()->TakeBlockedSeconds(), 0);
  rank.Next();
  EXPECT_GT(rank.round()->TakeBlockedSeconds(), 0);
  EXPECT_EQ(rank.round()->TakeBlockedSeconds(), 0);
}

}  // namespace
}  // namespace ringtail
