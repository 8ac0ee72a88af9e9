// The simulator must catch what is broken, or what it proves is worth nothing.
#include "tests/dist/collectives/plan_simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dist/collectives/algorithms/ring.h"

namespace ringtail {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kWorld = 4;
constexpr int64_t kCount = 8;  // two elements in each part

class BrokenPlan : public ::testing::Test {
 protected:
  BrokenPlan() {
    for (int rank = 0; rank < kWorld; ++rank) {
      plans_.push_back(RingAllreduce(rank, kWorld, kCount));
    }
  }
  Step& StepOf(size_t rank, size_t round, size_t step) {
    return plans_[rank].rounds[round].steps[step];
  }
  Simulation Run() { return Simulate(plans_, &arrays_); }
  bool SumsAreRight() const {
    return arrays_ == std::vector(kWorld, std::vector<double>(kCount, 1.0 * kWorld));
  }

  std::vector<Plan> plans_;
  std::vector<std::vector<double>> arrays_{kWorld, std::vector<double>(kCount, 1.0)};
};

TEST_F(BrokenPlan, IsNotWhatWeStartFrom) {
  const Simulation simulation = Run();
  EXPECT_THAT(simulation.error, IsEmpty());
  EXPECT_TRUE(SumsAreRight());
  EXPECT_EQ(simulation.rounds, 6);
  EXPECT_EQ(simulation.max_sent(), 12);  // 2 (N - 1) / N of 8
  EXPECT_EQ(simulation.max_through(), 24);
}

TEST_F(BrokenPlan, AWrongPartGivesWrongSums) {
  StepOf(1, 2, 0).range = EvenPart(kCount, kWorld, 0);
  EXPECT_THAT(Run().error, IsEmpty());
  EXPECT_FALSE(SumsAreRight());
}

TEST_F(BrokenPlan, ACopyInPlaceOfAnAdditionGivesWrongSums) {
  StepOf(3, 1, 1).kind = StepKind::kReceiveCopy;
  EXPECT_THAT(Run().error, IsEmpty());
  EXPECT_FALSE(SumsAreRight());
}

TEST_F(BrokenPlan, AMissingReceiveIsStuck) {
  plans_[2].rounds.back().steps.pop_back();
  EXPECT_THAT(Run().error, AllOf(HasSubstr("stuck: "),
                                 HasSubstr("rank 1 in round 5 sends to rank 2 elements [6, 8)")));
}

TEST_F(BrokenPlan, AMissingSendIsStuck) {
  plans_[0].rounds.front().steps.erase(plans_[0].rounds.front().steps.begin());
  plans_[0].rounds.back().steps.erase(plans_[0].rounds.back().steps.begin());
  EXPECT_THAT(Run().error, HasSubstr("stuck: "));
}

TEST_F(BrokenPlan, DifferentCountsAreNamedOnBothEnds) {
  StepOf(0, 0, 0).range.count = 1;
  EXPECT_THAT(Run().error,
              AllOf(HasSubstr("rank 0 in round 0 sends to rank 1 elements [6, 7)"),
                    HasSubstr("but rank 1 in round 0 adds from rank 0 elements [6, 8)")));
}

TEST_F(BrokenPlan, SendsThatWaitForOneAnotherAreADeadlock) {
  for (Plan& plan : plans_) {  // everyone sends first, and only then receives
    const Round both = plan.rounds.front();
    plan.rounds = {Round{{both.steps[0]}}, Round{{both.steps[1]}}};
  }
  EXPECT_THAT(Run().error, HasSubstr("stuck: rank 0 in round 0 sends to rank 1"));
}

TEST_F(BrokenPlan, ElementsOutsideTheArrayAreRefused) {
  StepOf(2, 3, 1).range = {.offset = kCount - 1, .count = 2};
  EXPECT_THAT(Run().error, HasSubstr("elements [7, 9): outside the array"));
}

TEST_F(BrokenPlan, AnUnknownPeerIsRefused) {
  StepOf(2, 0, 0).peer = kWorld;
  EXPECT_THAT(Run().error, HasSubstr("no such peer"));
}

TEST_F(BrokenPlan, TwoRoundsInOneGiveWrongSums) {
  // The elements received are also those sent, so the rank sends them as they were before.
  for (Plan& plan : plans_) {
    Round& first = plan.rounds[0];
    first.steps.insert(first.steps.end(), plan.rounds[1].steps.begin(), plan.rounds[1].steps.end());
    plan.rounds.erase(plan.rounds.begin() + 1);
  }
  EXPECT_THAT(Simulate(plans_, &arrays_, {.timing = Timing::kEager, .seed = 1}).error, IsEmpty());
  EXPECT_FALSE(SumsAreRight());
}

TEST(Simulator, AddsInTheOrderOfStepsWhoeverComesFirst) {
  const ElementRange one = {.offset = 0, .count = 1};
  const auto sum = [one](const std::vector<int>& order, uint64_t seed) {
    std::vector<Plan> plans(4);
    std::vector<Step> steps;
    for (const int from : order) {
      steps.push_back(Step::ReceiveReduce(from, one));
      plans[static_cast<size_t>(from)].AddRound({Step::Send(0, one)});
    }
    plans[0].AddRound(steps);
    std::vector<std::vector<float>> arrays = {{1.0F}, {0x1p30F}, {-0x1p30F}, {1.0F}};
    EXPECT_THAT(Simulate(plans, &arrays, {.timing = Timing::kEager, .seed = seed}).error,
                IsEmpty());
    return arrays[0][0];
  };
  for (uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(sum({1, 2, 3}, seed), 1.0F);  // 1 is lost in 2^30, which is then taken away
    EXPECT_EQ(sum({3, 1, 2}, seed), 0.0F);
  }
}

TEST(Simulator, KnowsWhoHeardOfWhom) {
  // 0 -> 1 -> 2: the last one has heard of all, the first of none.
  const ElementRange one = {.offset = 0, .count = 1};
  std::vector<Plan> chain(3);
  chain[0].AddRound({Step::Send(1, one)});
  chain[1].AddRound({Step::ReceiveCopy(0, one)});
  chain[1].AddRound({Step::Send(2, one)});
  chain[2].AddRound({Step::ReceiveCopy(1, one)});
  std::vector<std::vector<float>> arrays = {{1}, {2}, {3}};
  EXPECT_EQ(Simulate(chain, &arrays).heard_of, (std::vector<uint64_t>{0b001, 0b011, 0b111}));
  EXPECT_EQ(arrays[2][0], 1.0F);
}

}  // namespace
}  // namespace ringtail
