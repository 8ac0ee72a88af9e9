#include "dist/collectives/algorithms/double_binary_tree.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/dist/collectives/plan_simulator.h"

namespace ringtail {
namespace {

std::vector<Plan> Plans(int world, int64_t count, int64_t segment_elements) {
  std::vector<Plan> plans;
  plans.reserve(static_cast<size_t>(world));
  for (int rank = 0; rank < world; ++rank) {
    plans.push_back(DoubleBinaryTreeAllreduce(rank, world, count, segment_elements));
  }
  return plans;
}

TEST(DoubleBinaryTree, AddsUpWithSegmentsOfAnySize) {
  for (int world = 1; world <= 33; ++world) {
    for (const int64_t segment : {1, 3, 10, 100}) {
      for (const int64_t count : {1, 2, 21, 100}) {
        std::vector<std::vector<double>> arrays(static_cast<size_t>(world));
        std::vector<double> sum(static_cast<size_t>(count));
        for (int rank = 0; rank < world; ++rank) {
          for (int64_t i = 0; i < count; ++i) {
            const double x = static_cast<double>((rank + 1) * (rank + 7) * (i + 3));
            arrays[static_cast<size_t>(rank)].push_back(x);
            sum[static_cast<size_t>(i)] += x;
          }
        }
        ASSERT_EQ(Simulate(Plans(world, count, segment), &arrays).error, "")
            << world << " ranks, " << count << " elements, segments of " << segment;
        ASSERT_EQ(arrays, std::vector(static_cast<size_t>(world), sum))
            << world << " ranks, " << count << " elements, segments of " << segment;
      }
    }
  }
}

TEST(DoubleBinaryTree, EachRoundSendsAtMostOneSegmentAndReceivesAtMostOne) {
  for (int world = 2; world <= 200; ++world) {
    for (const Plan& plan : Plans(world, 40, 4)) {
      for (const Round& round : plan.rounds) {
        int sends = 0, receives = 0;
        for (const Step& step : round.steps) ++(step.kind == StepKind::kSend ? sends : receives);
        ASSERT_LE(sends, 1) << world << " ranks";
        ASSERT_LE(receives, 1) << world << " ranks";
      }
    }
  }
}

TEST(DoubleBinaryTree, NoRankHasMoreThanTwoChildrenInBothTreesTogether) {
  for (int world = 2; world <= 200; ++world) {
    for (const Plan& plan : Plans(world, 2, 1)) {
      int children = 0;
      for (const Round& round : plan.rounds) {
        for (const Step& step : round.steps) children += step.kind == StepKind::kReceiveReduce;
      }
      ASSERT_LE(children, 2) << world << " ranks";
    }
  }
}

TEST(DoubleBinaryTree, StandsAsItIsDrawn) {  // N = 8, one element in each half
  const auto parents = [](int tree) {
    std::vector<int> parent_of_rank;
    for (const Plan& plan : Plans(8, 2, 1)) {
      int parent = -1;
      for (const Round& round : plan.rounds) {
        for (const Step& step : round.steps) {
          if (step.kind == StepKind::kReceiveCopy && step.range.offset == tree) parent = step.peer;
        }
      }
      parent_of_rank.push_back(parent);
    }
    return parent_of_rank;
  };
  EXPECT_EQ(parents(0), (std::vector{-1, 2, 4, 2, 0, 6, 4, 6}));
  EXPECT_EQ(parents(1), (std::vector{1, 3, 1, 7, 5, 3, 5, -1}));
}

}  // namespace
}  // namespace ringtail
