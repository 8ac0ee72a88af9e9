#include "dist/planner/step_timetable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/dist/planner/planner_facts.h"

namespace ringtail {
namespace {

// Batches 10 and 30; forward 1 and 2 s, backward 2 and 5 s.
PlannerFacts TwoBatches() {
  PlannerFacts facts;
  facts.set_cores(2);
  facts.set_update_s(0.5);
  facts.add_parameter()->add_dimension(20);
  facts.add_parameter()->add_dimension(3);
  StepFacts* const small = facts.add_step();
  small->set_batch(10);
  small->set_forward_s(1);
  small->set_backward_s(2);
  small->add_finish_s(0.5);
  small->add_finish_s(2);
  StepFacts* const large = facts.add_step();
  large->set_batch(30);
  large->set_forward_s(2);
  large->set_backward_s(5);
  large->add_finish_s(1.5);
  large->add_finish_s(5);
  return facts;
}

TEST(StepTimetableTest, IsLinearBetweenMeasuredBatches) {
  const StepTimetable table(TwoBatches(), 2);
  EXPECT_DOUBLE_EQ(table.TimesAt(10, 1).forward, 1);
  EXPECT_DOUBLE_EQ(table.TimesAt(30, 1).backward, 5);
  const ComputeTimes middle = table.TimesAt(20, 1);
  EXPECT_DOUBLE_EQ(middle.forward, 1.5);
  EXPECT_DOUBLE_EQ(middle.backward, 3.5);
  EXPECT_DOUBLE_EQ(middle.ready[0], 1);
  EXPECT_EQ(middle.earlier_backward, 0);
}

// The line through both is 1 s at no image: 2 s (of 3) at a batch of 5.
TEST(StepTimetableTest, BelowTheSmallestTheLineGoesOn) {
  const StepTimetable table(TwoBatches(), 2);
  const ComputeTimes times = table.TimesAt(5, 1);
  EXPECT_DOUBLE_EQ(times.forward + times.backward, 2);
  EXPECT_DOUBLE_EQ(times.ready[1], times.backward);
}

// 60 images: at least two parts of 30; whole steps take no more than that.
TEST(StepTimetableTest, WholeStepsHaveNoMorePartsThanTheyMust) {
  PlannerFacts facts = TwoBatches();
  EXPECT_THAT(StepTimetable(facts, 2).EqualParts(60), testing::ElementsAre(2, 3, 4, 5, 6));
  EXPECT_THAT(StepTimetable(facts, 2).EqualParts(30), testing::ElementsAre(1, 2, 3));
  facts.set_whole_steps(true);
  EXPECT_THAT(StepTimetable(facts, 2).EqualParts(60), testing::ElementsAre(2));
  EXPECT_THAT(StepTimetable(facts, 2).EqualParts(30), testing::ElementsAre(1));
}

// What can be prepared is divided by the cores, as the update that it belongs to.
TEST(StepTimetableTest, PreparationIsAPartOfTheUpdate) {
  PlannerFacts facts = TwoBatches();
  EXPECT_TRUE(StepTimetable(facts, 2).TimesAt(10, 1).prepare.empty());
  facts.add_prepare_s(0.3);
  facts.add_prepare_s(0);
  const ComputeTimes times = StepTimetable(facts, 4).TimesAt(10, 1);
  EXPECT_DOUBLE_EQ(times.update, 0.25);
  ASSERT_EQ(times.prepare.size(), 2U);
  EXPECT_DOUBLE_EQ(times.prepare[0], 0.15);
  EXPECT_EQ(times.prepare[1], 0);
}

TEST(StepTimetableTest, ASmallBatchIsNeverMoreEfficient) {
  PlannerFacts facts = TwoBatches();
  facts.mutable_step(1)->set_backward_s(20);  // a line that would be below zero at 5
  const ComputeTimes times = StepTimetable(facts, 2).TimesAt(5, 1);
  EXPECT_DOUBLE_EQ(times.forward + times.backward, 1.5);
}

TEST(StepTimetableTest, BeyondTheLargestTheStepHasParts) {
  const StepTimetable table(TwoBatches(), 2);
  const ComputeTimes times = table.TimesAt(60, 1);
  EXPECT_DOUBLE_EQ(times.forward, 4);
  EXPECT_DOUBLE_EQ(times.earlier_backward, 5);
  EXPECT_DOUBLE_EQ(times.backward, 5);
  EXPECT_DOUBLE_EQ(table.TimesAt(90, 1).forward, 6);
}

// 30 images at once take 7 s, three times 10 take 9; if 30 take 12 s, three times 10 are faster.
TEST(StepTimetableTest, PartsThatFitIntoTheCachesAreFaster) {
  PlannerFacts facts = TwoBatches();
  EXPECT_EQ(StepTimetable(facts, 2).PartsOf(30), 1);
  EXPECT_EQ(StepTimetable(facts, 2).PartsOf(31), 2);
  facts.mutable_step(1)->set_backward_s(10);
  const StepTimetable table(facts, 2);
  EXPECT_EQ(table.PartsOf(30), 3);
  EXPECT_EQ(table.PartsOf(29), 1);  // no equal parts
  EXPECT_DOUBLE_EQ(table.TimesAt(30, 1).forward, 3);
  EXPECT_DOUBLE_EQ(table.TimesAt(30, 1).earlier_backward, 4);
  EXPECT_DOUBLE_EQ(table.TimesAt(30, 1).backward, 2);
}

TEST(StepTimetableTest, PartsAreEqualAndHaveEnoughImages) {
  PlannerFacts facts = TwoBatches();
  EXPECT_EQ(StepTimetable(facts, 2).EqualParts(30), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(StepTimetable(facts, 2).EqualParts(60), (std::vector<int64_t>{2, 3, 4, 5, 6}));
  EXPECT_EQ(StepTimetable(facts, 2).EqualParts(5), (std::vector<int64_t>{1}));
  facts.set_buffer_elements(1);  // batch norm's, of at least 16 images
  EXPECT_EQ(StepTimetable(facts, 2).EqualParts(30), (std::vector<int64_t>{1}));
  EXPECT_EQ(StepTimetable(facts, 2).EqualParts(60), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(StepTimetable(facts, 2).EqualParts(5), (std::vector<int64_t>{1}));
}

TEST(StepTimetableTest, ScalesWithCores) {
  const StepTimetable table(TwoBatches(), 8);
  EXPECT_DOUBLE_EQ(table.TimesAt(10, 1).forward, 0.25);
  EXPECT_DOUBLE_EQ(table.TimesAt(1, 1).update, 0.125);
}

TEST(StepTimetableTest, LoadingTakesItsShareOfEverything) {
  PlannerFacts facts = TwoBatches();
  const ComputeTimes before = StepTimetable(facts, 2).TimesAt(20, 1);
  facts.set_load_cpu_s(0.05);
  const ComputeTimes times = StepTimetable(facts, 2).TimesAt(20, 1);
  const double computing = before.forward + before.backward + before.update;
  const double factor = (computing + 20 * 0.05 / 2) / computing;
  EXPECT_DOUBLE_EQ(times.forward, factor * before.forward);
  EXPECT_DOUBLE_EQ(times.backward, factor * before.backward);
  EXPECT_DOUBLE_EQ(times.update, factor * before.update);
  EXPECT_DOUBLE_EQ(times.ready.back(), factor * before.ready.back());
  EXPECT_DOUBLE_EQ(StepTimetable(facts, 2000).TimesAt(20, 1).update, factor * before.update / 1000);
}

// Of two epochs a rank alone decodes one, one of two 1 and 1/2.
TEST(StepTimetableTest, RanksThatShareImagesDecodeMoreOfThem) {
  PlannerFacts facts = TwoBatches();
  facts.set_load_cpu_s(0.05);
  facts.set_decode_cpu_s(0.2);
  facts.set_cached_share(1);
  facts.set_epochs(2);
  PlannerFacts same = TwoBatches();
  same.set_load_cpu_s(0.05 + 0.2 / 2);
  EXPECT_DOUBLE_EQ(StepTimetable(facts, 2).TimesAt(20, 1).forward,
                   StepTimetable(same, 2).TimesAt(20, 1).forward);
  same.set_load_cpu_s(0.05 + 0.2 * 3 / 4);
  EXPECT_DOUBLE_EQ(StepTimetable(facts, 2).TimesAt(20, 2).forward,
                   StepTimetable(same, 2).TimesAt(20, 2).forward);
  // With a shard for each of two, one of two epochs, as alone.
  facts.set_shards(2);
  same.set_load_cpu_s(0.05 + 0.2 / 2);
  EXPECT_DOUBLE_EQ(StepTimetable(facts, 2).TimesAt(20, 2).forward,
                   StepTimetable(same, 2).TimesAt(20, 2).forward);
}

TEST(StepTimetableTest, RisesWithTheBatch) {
  Rng rng(RngKey(3).With(kTestStream));
  for (int i = 0; i < 100; ++i) {
    const PlannerFacts facts = RandomFacts(&rng);
    const StepTimetable table(facts, 1);
    double before = 0;
    for (int64_t batch = 1; batch <= 64; ++batch) {
      const ComputeTimes times = table.TimesAt(batch, 1);
      const double seconds = times.forward + times.earlier_backward + times.backward;
      // A step of several parts pays the constant of each.
      EXPECT_GE(seconds, before * (1 - 1e-12)) << batch;
      before = seconds;
    }
  }
}

// As MakeGradientBuckets and the executor see them: core/parameter.h places parameters so.
TEST(StepTimetableTest, ParametersLieAsInAnArena) {
  const PlannerFacts facts = TwoBatches();
  const std::vector<Parameter> parameters = ParametersOf(facts);
  std::vector<ParameterSpec> specs;
  specs.reserve(parameters.size());
  for (const Parameter& p : parameters) {
    specs.push_back({.name = std::to_string(specs.size()), .shape = p.spec.shape});
  }
  const auto arena = ParameterArena::Create(specs, {}).value();
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(parameters[i].offset, arena->parameters()[i].offset);
    EXPECT_EQ(parameters[i].elements, arena->parameters()[i].elements);
  }
}

}  // namespace
}  // namespace ringtail
