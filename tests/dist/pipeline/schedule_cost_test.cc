// Prices of schedules: exact against examples worked out by hand, against formulas where there are
// some, and bounds for random pipelines.
#include "dist/pipeline/schedule_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/random.h"

namespace ringtail {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

constexpr PipelineKind kKinds[] = {PipelineKind::kGpipe, PipelineKind::kOneForwardOneBackward};
constexpr double kTiny = 1e-9;

// Equal stages and boundaries.
PipelineCosts Equal(int stages, StageCost stage, BoundaryCost boundary = {}, LinkModel link = {}) {
  PipelineCosts costs{.link = link};
  costs.stages.assign(stages, stage);
  costs.boundaries.assign(stages - 1, boundary);
  return costs;
}

double PathSeconds(const ScheduleCost& cost) {
  double seconds = 0;
  for (const PathPart& part : cost.critical_path) seconds += part.seconds;
  return seconds;
}

// An activation keeps a port for 1 s and is there after 1.5 s, a gradient 2 s and 2.5 s.
TEST(ScheduleCostTest, GpipeOfTwoStagesByHand) {
  const ScheduleCost cost = CostOfSchedule(
      {PipelineKind::kGpipe, 2, 2}, Equal(2, {.forward_s = 1, .backward_s = 2, .kept_bytes = 7},
                                          {.activation_bytes = 10, .gradient_bytes = 20},
                                          {.latency_s = 0.5, .seconds_per_byte = 0.1}));
  //   stage 0   F0 0-1  F1 1-2                                                B0 9-11  B1 11-13
  //   messages     1-2.5  2-3.5                             6.5-9  8.5-11
  //   stage 1               F0 2.5-3.5  F1 3.5-4.5  B0 4.5-6.5  B1 6.5-8.5
  EXPECT_THAT(cost.start_s[0], ElementsAre(0, 1, 9, 11));
  EXPECT_THAT(cost.start_s[1], ElementsAre(2.5, 3.5, 4.5, 6.5));
  EXPECT_DOUBLE_EQ(cost.step_s, 13);
  EXPECT_THAT(cost.busy_s, ElementsAre(6, 6));
  EXPECT_DOUBLE_EQ(cost.bubble[0], 7.0 / 13);
  EXPECT_DOUBLE_EQ(cost.MeanBubble(), 7.0 / 13);
  EXPECT_THAT(cost.peak_activation_bytes, ElementsAre(14, 14));
  EXPECT_EQ(DescribeCriticalPath(cost),
            "38.5 % stage 0 (1 forward, 2 backwards), 30.8 % stage 1 (2 forwards, 1 backward), "
            "19.2 % gradients from stage 1 to 0 (1 message), "
            "11.5 % activations from stage 0 to 1 (1 message)");
}

// Every operation and every message takes 1 s.
TEST(ScheduleCostTest, OneForwardOneBackwardOfThreeStagesByHand) {
  const ScheduleCost cost =
      CostOfSchedule({PipelineKind::kOneForwardOneBackward, 3, 2},
                     Equal(3, {.forward_s = 1, .backward_s = 1, .kept_bytes = 100},
                           {.activation_bytes = 1, .gradient_bytes = 1}, {.seconds_per_byte = 1}));
  //   stage 0   F0 0-1  F1 1-2                              B0 9-10          B1 11-12
  //   stage 1           F0 2-3  F1 3-4        B0 7-8  B1 9-10
  //   stage 2                   F0 4-5  B0 5-6  F1 6-7  B1 7-8
  EXPECT_THAT(cost.start_s[0], ElementsAre(0, 1, 9, 11));
  EXPECT_THAT(cost.start_s[1], ElementsAre(2, 3, 7, 9));
  EXPECT_THAT(cost.start_s[2], ElementsAre(4, 5, 6, 7));
  EXPECT_DOUBLE_EQ(cost.step_s, 12);
  EXPECT_THAT(cost.bubble, Pointwise(DoubleNear(kTiny), {2.0 / 3, 2.0 / 3, 2.0 / 3}));
  EXPECT_THAT(cost.peak_activation_bytes, ElementsAre(200, 200, 100));
  EXPECT_DOUBLE_EQ(PathSeconds(cost), 12);
}

TEST(ScheduleCostTest, AnUnequalStageIsTheCriticalPath) {
  PipelineCosts costs = Equal(2, {.forward_s = 1, .backward_s = 1});
  costs.stages[1] = {.forward_s = 3, .backward_s = 3};
  const ScheduleCost cost = CostOfSchedule({PipelineKind::kOneForwardOneBackward, 2, 4}, costs);
  EXPECT_DOUBLE_EQ(cost.step_s, 1 + 4 * 6 + 1);
  EXPECT_DOUBLE_EQ(cost.bubble[0], 18.0 / 26);
  EXPECT_DOUBLE_EQ(cost.bubble[1], 2.0 / 26);
  EXPECT_EQ(DescribeCriticalPath(cost),
            "92.3 % stage 1 (4 forwards, 4 backwards), 7.7 % stage 0 (1 forward, 1 backward)");
}

// A slow first stage computes its first forwards while the others have not begun, so that few
// micro-batches wait less than the formula of equal stages says. In GPipe they never do.
TEST(ScheduleCostTest, UnequalStagesMayWaitLessThanEqualOnes) {
  PipelineCosts costs = Equal(4, {.forward_s = 8, .backward_s = 16});
  costs.stages[0] = {.forward_s = 12, .backward_s = 24};
  PipelineShape shape{PipelineKind::kOneForwardOneBackward, 4, 4};
  const ScheduleCost cost = CostOfSchedule(shape, costs);
  // F0 of every stage, B0 of the others, four backwards of the first.
  EXPECT_DOUBLE_EQ(cost.step_s, 12 + 3 * 8 + 3 * 16 + 4 * 24);
  EXPECT_DOUBLE_EQ(cost.MeanBubble(), 0.4);
  EXPECT_LT(cost.MeanBubble(), IdealBubble(shape));
  shape.kind = PipelineKind::kGpipe;
  EXPECT_GT(CostOfSchedule(shape, costs).MeanBubble(), IdealBubble(shape));
}

TEST(ScheduleCostTest, OneStageNeverWaits) {
  for (const PipelineKind kind : kKinds) {
    const ScheduleCost cost =
        CostOfSchedule({kind, 1, 5}, Equal(1, {.forward_s = 2, .backward_s = 3}));
    EXPECT_DOUBLE_EQ(cost.step_s, 25);
    EXPECT_THAT(cost.bubble, ElementsAre(0));
  }
}

TEST(ScheduleCostTest, EqualStagesHaveTheBubbleOfTheFormula) {
  for (const PipelineKind kind : kKinds) {
    for (int stages = 1; stages <= 33; ++stages) {
      for (const int micro_batches : {1, 2, 5, stages, 4 * stages, 64}) {
        const PipelineShape shape{kind, stages, micro_batches};
        const ScheduleCost cost =
            CostOfSchedule(shape, Equal(stages, {.forward_s = 1, .backward_s = 2}));
        const double expected = static_cast<double>(stages - 1) / (micro_batches + stages - 1);
        ASSERT_DOUBLE_EQ(cost.step_s, 3 * (micro_batches + stages - 1))
            << PipelineKindName(kind) << " " << stages << " " << micro_batches;
        ASSERT_THAT(cost.bubble, testing::Each(DoubleNear(expected, kTiny)));
        ASSERT_DOUBLE_EQ(IdealBubble(shape), expected);
      }
    }
  }
}

// With one slot a fast stage runs at most one message ahead of a slow one; two slots let it
// compute the next while the first is read.
TEST(ScheduleCostTest, SlotsBoundHowFarAStageRunsAhead) {
  PipelineCosts costs = Equal(2, {.forward_s = 1, .backward_s = 1});
  costs.stages[1].forward_s = 10;
  const PipelineShape shape{PipelineKind::kGpipe, 2, 4};
  const auto forwards = [&](int slots) {
    costs.slots = slots;
    const std::vector<double> starts = CostOfSchedule(shape, costs).start_s[0];
    return std::vector<double>(starts.begin(), starts.begin() + 4);
  };
  EXPECT_THAT(forwards(1), ElementsAre(0, 1, 11, 21));
  EXPECT_THAT(forwards(2), ElementsAre(0, 1, 2, 3));
}

// A middle stage sends activations and gradients through one port, the stages of a pair through one
// port each.
TEST(ScheduleCostTest, AStageHasOnePortForBothNeighbours) {
  constexpr int kMicroBatches = 8;
  const auto step = [](int stages) {
    return CostOfSchedule(
               {PipelineKind::kOneForwardOneBackward, stages, kMicroBatches},
               Equal(stages, {.forward_s = 0.001, .backward_s = 0.001},
                     {.activation_bytes = 1, .gradient_bytes = 1}, {.seconds_per_byte = 1}))
        .step_s;
  };
  EXPECT_LT(step(2), 1.5 * kMicroBatches);
  EXPECT_GE(step(3), 2 * kMicroBatches);
}

TEST(ScheduleCostTest, AMessageWithoutBytesIsNone) {
  const LinkModel link{.latency_s = 1, .seconds_per_byte = 1};
  EXPECT_EQ(SecondsOfMessage(0, link), 0);
  EXPECT_EQ(SecondsOfMessage(3, link), 4);
  const ScheduleCost cost =
      CostOfSchedule({PipelineKind::kGpipe, 2, 1},
                     Equal(2, {.forward_s = 1, .backward_s = 1}, {.activation_bytes = 3}, link));
  EXPECT_DOUBLE_EQ(cost.step_s, 1 + 4 + 2 + 1);
}

PipelineCosts RandomCosts(int stages, bool free_messages, Rng* rng) {
  PipelineCosts costs;
  for (int s = 0; s < stages; ++s) {
    costs.stages.push_back({.forward_s = 1 + static_cast<double>(rng->Below(9)),
                            .backward_s = 1 + static_cast<double>(rng->Below(9)),
                            .kept_bytes = static_cast<int64_t>(rng->Below(1000))});
  }
  for (int b = 0; b + 1 < stages; ++b) {
    costs.boundaries.push_back({.activation_bytes = static_cast<int64_t>(rng->Below(30)),
                                .gradient_bytes = static_cast<int64_t>(rng->Below(30))});
  }
  if (!free_messages) costs.link = {.latency_s = 0.25, .seconds_per_byte = 0.125};
  costs.slots = 1 + static_cast<int>(rng->Below(3));
  return costs;
}

// All forwards pass the slowest stage, then all backwards (Huang et al. 2019).
TEST(ScheduleCostTest, GpipeWithFreeMessagesIsTwoFlows) {
  Rng rng(RngKey(5).With(kTestStream));
  for (int round = 0; round < 300; ++round) {
    const int stages = 1 + static_cast<int>(rng.Below(9));
    const int micro_batches = 1 + static_cast<int>(rng.Below(20));
    const PipelineCosts costs = RandomCosts(stages, /*free_messages=*/true, &rng);
    double forward = 0, backward = 0, most_forward = 0, most_backward = 0;
    for (const StageCost& stage : costs.stages) {
      forward += stage.forward_s;
      backward += stage.backward_s;
      most_forward = std::max(most_forward, stage.forward_s);
      most_backward = std::max(most_backward, stage.backward_s);
    }
    const double expected =
        forward + backward + (micro_batches - 1) * (most_forward + most_backward);
    ASSERT_DOUBLE_EQ(CostOfSchedule({PipelineKind::kGpipe, stages, micro_batches}, costs).step_s,
                     expected);
  }
}

TEST(ScheduleCostTest, RandomPipelinesKeepToTheBoundsAndTheirPathAddsUp) {
  Rng rng(RngKey(6).With(kTestStream));
  for (int round = 0; round < 500; ++round) {
    const int stages = 1 + static_cast<int>(rng.Below(7));
    const int micro_batches = 1 + static_cast<int>(rng.Below(12));
    const PipelineCosts costs = RandomCosts(stages, /*free_messages=*/false, &rng);
    const PipelineShape shape{kKinds[rng.Below(2)], stages, micro_batches};
    const ScheduleCost cost = CostOfSchedule(shape, costs);
    double before = 0, all = 0;
    for (int s = 0; s < stages; ++s) {
      const double own = costs.stages[s].forward_s + costs.stages[s].backward_s;
      EXPECT_GE(cost.step_s, before + micro_batches * own - kTiny);
      EXPECT_NEAR(cost.busy_s[s], micro_batches * own, kTiny);
      EXPECT_NEAR(cost.bubble[s], 1 - micro_batches * own / cost.step_s, kTiny);
      EXPECT_EQ(cost.peak_activation_bytes[s], MostAlive(shape, s) * costs.stages[s].kept_bytes);
      EXPECT_EQ(cost.start_s[s].size(), 2U * micro_batches);
      EXPECT_TRUE(std::is_sorted(cost.start_s[s].begin(), cost.start_s[s].end()));
      before += own;
      all += micro_batches * own;
      if (s + 1 == stages) continue;
      for (const int64_t bytes :
           {costs.boundaries[s].activation_bytes, costs.boundaries[s].gradient_bytes}) {
        before += SecondsOfMessage(bytes, costs.link);
        all += micro_batches * SecondsOfMessage(bytes, costs.link);
      }
    }
    EXPECT_LE(cost.step_s, all + kTiny);  // nothing at the same time as anything else
    EXPECT_NEAR(PathSeconds(cost), cost.step_s, kTiny);
    EXPECT_TRUE(
        std::is_sorted(cost.critical_path.begin(), cost.critical_path.end(),
                       [](const PathPart& a, const PathPart& b) { return a.seconds > b.seconds; }));
    for (const PathPart& part : cost.critical_path) EXPECT_GE(part.seconds, 0);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace ringtail
