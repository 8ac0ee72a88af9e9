#include "dist/collectives/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/random.h"
#include "dist/collectives/algorithms/binomial_tree.h"
#include "dist/collectives/algorithms/halving_doubling.h"
#include "tests/dist/collectives/test_plans.h"

namespace ringtail {
namespace {

Collective Floats(int64_t count, int64_t segment_elements) {
  return {.name = "test", .count = count, .segment_bytes = segment_elements * 4};
}

bool Overlap(const ElementRange& a, const ElementRange& b) {
  return a.offset < b.end() && b.offset < a.end();
}

// For each operation, all that end before it begins.
std::vector<std::set<int>> Predecessors(const Schedule& schedule) {
  const auto operations = schedule.operations();
  std::vector<std::set<int>> before(operations.size());
  for (int i = 0; i < static_cast<int>(operations.size()); ++i) {
    for (const int follower : operations[i].followers) {
      before[follower].insert(i);
      before[follower].insert(before[i].begin(), before[i].end());
    }
  }
  return before;
}

TEST(Schedule, CutsStepsIntoEvenSegmentsAndLeavesEmptyOnesOut) {
  const Plan plan{{{{{StepKind::kSend, 1, {0, 0}}, {StepKind::kReceiveReduce, 1, {5, 10}}}}}};
  const Schedule schedule(plan, 0, Floats(20, 4));
  const auto operations = schedule.operations();
  ASSERT_EQ(operations.size(), 3);
  const ElementRange ranges[] = {{5, 4}, {9, 3}, {12, 3}};
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(operations[i].range, ranges[i]);
    EXPECT_EQ(operations[i].label.tag, (MessageTag{.collective = 0, .step = 0, .segment = i}));
    EXPECT_TRUE(operations[i].staged);
  }
  EXPECT_EQ(schedule.largest_staged_elements(), 4);
}

TEST(Schedule, StepsAreCountedForEachPeerAndDirection) {
  const Plan plan{{{{{StepKind::kSend, 1, {0, 1}},
                     {StepKind::kSend, 2, {0, 1}},
                     {StepKind::kReceiveCopy, 1, {1, 1}}}},
                   {{{StepKind::kSend, 1, {2, 0}}, {StepKind::kSend, 1, {2, 1}}}}}};
  const Schedule schedule(plan, 0, Floats(3, 8));
  std::vector<uint32_t> numbers;
  for (const ScheduledOperation& operation : schedule.operations()) {
    numbers.push_back(operation.label.tag.step);
  }
  EXPECT_THAT(numbers, ::testing::ElementsAre(0, 0, 0, 1));
}

// What makes a ring a pipeline.
TEST(Schedule, ASegmentOfARingIsSentOnceItIsReceivedWhateverBecomesOfTheOthers) {
  constexpr int kWorld = 4;
  const Schedule schedule(TestRing(1, kWorld, 400), 1, Floats(400, 10));
  const auto operations = schedule.operations();
  const auto before = Predecessors(schedule);
  int checked = 0;
  for (size_t i = 0; i < operations.size(); ++i) {
    if (operations[i].kind != StepKind::kSend || operations[i].round == 0) continue;
    for (const int earlier : before[i]) {
      EXPECT_EQ(operations[earlier].range, operations[i].range);
      ++checked;
    }
    EXPECT_FALSE(before[i].empty());
  }
  EXPECT_GT(checked, 50);
}

TEST(Schedule, ARoundSendsWhatWasThereBeforeItsReceives) {
  const Schedule schedule(TestDoubling(0, 2, 30), 0, Floats(30, 10));
  const auto operations = schedule.operations();
  ASSERT_EQ(operations.size(), 6);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(operations[i].kind, StepKind::kSend);
    EXPECT_EQ(operations[i].waits_for, 0);
    EXPECT_THAT(operations[i].followers, ::testing::ElementsAre(i + 3));
  }
}

TEST(Schedule, SumsFromSeveralPeersHaveOneOrderAndComeSegmentBySegment) {
  const Schedule schedule(TestSingleReducer(0, 4, 20), 0, Floats(20, 10));
  const auto operations = schedule.operations();
  std::vector<std::pair<int, uint32_t>> receives;  // peer, segment
  for (int i = 0; i < 6; ++i) {
    receives.emplace_back(operations[i].peer, operations[i].label.tag.segment);
    EXPECT_EQ(operations[i].waits_for, operations[i].peer == 1 ? 0 : 1);
  }
  EXPECT_THAT(receives, ::testing::ElementsAre(std::pair(1, 0), std::pair(2, 0), std::pair(3, 0),
                                               std::pair(1, 1), std::pair(2, 1), std::pair(3, 1)));
}

TEST(Schedule, ElementsThatTwoRanksSwapGoThroughStaging) {
  const Plan swap{{{{{StepKind::kReceiveCopy, 1, {0, 10}}, {StepKind::kSend, 1, {0, 10}}}}}};
  const Schedule schedule(swap, 0, Floats(10, 10));
  ASSERT_EQ(schedule.operations().size(), 2);
  EXPECT_EQ(schedule.operations()[0].kind, StepKind::kSend);
  EXPECT_TRUE(schedule.operations()[1].staged);

  const Plan apart{{{{{StepKind::kReceiveCopy, 1, {0, 5}}, {StepKind::kSend, 1, {5, 5}}}}}};
  EXPECT_FALSE(Schedule(apart, 0, Floats(10, 10)).operations()[1].staged);
}

// Eight ranks exchange ever smaller parts, each round with another one: three segments, two, one.
TEST(Schedule, AnExchangeEndsBeforeThatWithAnotherPeerBegins) {
  const Plan plan = HalvingDoublingAllreduce(0, 8, 480);
  const Schedule schedule(plan, 0, Floats(480, 80));
  const auto operations = schedule.operations();
  const auto before = Predecessors(schedule);
  int checked = 0;
  for (size_t i = 0; i < operations.size(); ++i) {
    if (operations[i].kind != StepKind::kSend || operations[i].round == 0) continue;
    const bool same_peer = operations[i].round == 3;  // the last halving and the first doubling
    for (size_t k = 0; k < operations.size(); ++k) {
      const bool of_last_exchange =
          operations[k].round == operations[i].round - 1 && operations[k].kind != StepKind::kSend;
      const bool last_segment = of_last_exchange && (k + 1 == operations.size() ||
                                                     operations[k + 1].round > operations[k].round);
      if (!last_segment || same_peer) continue;
      EXPECT_TRUE(before[i].contains(static_cast<int>(k))) << k << ", " << i;
      ++checked;
    }
  }
  EXPECT_GE(checked, 4);
}

// Trees receive from some and send to others: what has come is passed on at once.
TEST(Schedule, SegmentsOfATreeArePassedOnWhileOthersComeIn) {
  const Schedule schedule(BinomialTreeAllreduce(1, 4, 400), 1, Floats(400, 100));
  const auto before = Predecessors(schedule);
  for (size_t i = 0; i < schedule.operations().size(); ++i) {
    const ScheduledOperation& operation = schedule.operations()[i];
    if (operation.kind != StepKind::kSend) continue;
    for (const int earlier : before[i]) {
      EXPECT_TRUE(Overlap(schedule.operations()[earlier].range, operation.range));
    }
  }
}

// Whether a send to `peer` waits for the exchange of the rank's last round that sent something.
bool IsAnotherExchange(const Plan& plan, int round, int peer) {
  for (int r = round - 1; r >= 0; --r) {
    std::set<int> sent, received;
    for (const Step& step : plan.rounds[r].steps) {
      if (step.range.count > 0) (step.kind == StepKind::kSend ? sent : received).insert(step.peer);
    }
    if (sent.empty()) continue;
    return !sent.contains(peer) &&
           std::ranges::any_of(sent, [&](int other) { return received.contains(other); });
  }
  return false;
}

// Random plans, by brute force: an operation that shares elements with an earlier one, where one of
// them writes, comes after it; and none waits without a reason.
TEST(Schedule, WaitsForExactlyWhatItConflictsWith) {
  Rng random(RngKey(3));
  int conflicts = 0;
  for (int trial = 0; trial < 200; ++trial) {
    Plan plan;
    const int64_t count = 1 + static_cast<int64_t>(random.Below(40));
    for (uint64_t round = random.Below(6); round-- > 0;) {
      plan.rounds.emplace_back();
      for (uint64_t step = random.Below(5); step-- > 0;) {
        const auto offset = static_cast<int64_t>(random.Below(count));
        plan.rounds.back().steps.push_back(
            {.kind = static_cast<StepKind>(random.Below(3)),
             .peer = 1 + static_cast<int>(random.Below(3)),
             .range = {offset, static_cast<int64_t>(random.Below(count - offset + 1))}});
      }
    }
    const Schedule schedule(plan, 0, Floats(count, 1 + static_cast<int64_t>(random.Below(9))));
    const auto operations = schedule.operations();
    const auto before = Predecessors(schedule);
    for (size_t i = 0; i < operations.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const ScheduledOperation &a = operations[j], &b = operations[i];
        EXPECT_LE(a.round, b.round);
        if (a.round == b.round && b.kind == StepKind::kSend) {
          EXPECT_EQ(a.kind, StepKind::kSend);
        }
        const bool writes = a.kind != StepKind::kSend || b.kind != StepKind::kSend;
        const bool conflict = writes && Overlap(a.range, b.range);
        conflicts += conflict ? 1 : 0;
        EXPECT_LE(conflict, before[i].contains(j)) << trial << ": " << j << ", " << i;
        const bool waits = std::count(a.followers.begin(), a.followers.end(), i) > 0;
        const bool exchange = b.kind == StepKind::kSend && IsAnotherExchange(plan, b.round, b.peer);
        EXPECT_LE(waits, conflict || exchange) << trial << ": " << j << ", " << i;
      }
    }
  }
  EXPECT_GT(conflicts, 1000);
}

// The check of every message from 0 to 1: as its sender makes it, and as its receiver does.
std::pair<uint64_t, uint64_t> Checks(const Plan& sender, const Collective& sent,
                                     const Plan& receiver, const Collective& expected) {
  uint64_t of_sender = 0, of_receiver = 0;
  const Schedule sending(sender, 0, sent), receiving(receiver, 1, expected);
  for (const ScheduledOperation& operation : sending.operations()) {
    if (operation.kind == StepKind::kSend && operation.peer == 1) {
      of_sender = operation.label.check;
    }
  }
  for (const ScheduledOperation& operation : receiving.operations()) {
    if (operation.kind != StepKind::kSend && operation.peer == 0) {
      of_receiver = operation.label.check;
    }
  }
  return {of_sender, of_receiver};
}

TEST(Schedule, ChecksAgreeIfAndOnlyIfTheRanksMeanTheSame) {
  constexpr int kWorld = 3;
  constexpr int64_t kCount = 30;
  const Collective collective = Floats(kCount, 8);
  const Plan sender = TestRing(0, kWorld, kCount), receiver = TestRing(1, kWorld, kCount);
  const auto agree = [&](const Plan& plan, const Collective& other) {
    const auto [sent, expected] = Checks(sender, collective, plan, other);
    return sent == expected;
  };
  EXPECT_TRUE(agree(receiver, collective));

  Collective other = collective;
  other.name = "another";
  EXPECT_FALSE(agree(receiver, other));
  other = collective;
  other.type = ElementType::kDouble;
  other.segment_bytes *= 2;
  EXPECT_FALSE(agree(receiver, other));
  EXPECT_FALSE(agree(receiver, Floats(kCount, 9)));
  EXPECT_FALSE(agree(TestRing(1, kWorld, kCount - 1), Floats(kCount - 1, 8)));
  // The same lengths, one round's elements elsewhere.
  Plan moved = receiver;
  moved.rounds.back().steps.back().range.offset += 1;
  EXPECT_FALSE(agree(moved, collective));
}

}  // namespace
}  // namespace ringtail
