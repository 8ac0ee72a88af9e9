// What of a network and its config the facts hold.
#include "apps/plan/measure_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "dist/planner/facts_file.h"
#include "tests/apps/tiny_run.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

PlannerFacts FactsOf(const std::vector<std::string>& overrides, bool frozen = true) {
  const auto facts = MeasureFacts(TinyConfig(overrides), {.largest_batch = 2,
                                                          .sizes = {{.image_size = 16}},
                                                          .steps = 1,
                                                          .fractions = 1,
                                                          .frozen = frozen,
                                                          .schemes = {}});
  EXPECT_TRUE(facts.ok()) << facts.status().message();
  return facts.ok() ? *facts : PlannerFacts();
}

std::vector<std::string> NamesOf(const PlannerFacts& facts) {
  std::vector<std::string> names;
  for (const ParameterFacts& parameter : facts.parameter()) names.push_back(parameter.name());
  return names;
}

TEST(MeasureFactsTest, WhatIsFrozenCountsIfItThaws) {
  const std::vector<std::string> overrides = {"train.freeze=\"all-but-head\"",
                                              "train.freeze_epochs=1"};
  EXPECT_THAT(NamesOf(FactsOf(overrides)), ElementsAre("fc.weight", "fc.bias"));
  EXPECT_THAT(NamesOf(FactsOf(overrides, /*frozen=*/false)),
              testing::AllOf(testing::Contains("conv1.weight"), testing::Contains("fc.bias")));
}

// Ranks that measure together know it of all of them.
TEST(MeasureFactsTest, HowMuchStepsVaryMayBeKnownOfAllRanks) {
  std::vector<size_t> steps;
  const auto facts =
      MeasureFacts(TinyConfig({}), {.largest_batch = 2,
                                    .sizes = {{.image_size = 16}},
                                    .steps = 3,
                                    .fractions = 1,
                                    .schemes = {},
                                    .deviation = [&](const std::vector<double>& step_s) {
                                      steps.push_back(step_s.size());
                                      EXPECT_THAT(step_s, testing::Each(testing::Gt(0)));
                                      return 0.125;
                                    }});
  ASSERT_TRUE(facts.ok()) << facts.status().message();
  EXPECT_THAT(steps, ElementsAre(3));
  EXPECT_EQ(facts->step_deviation(), 0.125);
}

TEST(MeasureFactsTest, EachImageSizeHasStepsOfTheSameBatches) {
  std::vector<std::pair<int64_t, int64_t>> nets;  // images, pixels
  MeasureFactsOptions options{.largest_batch = 4,
                              .sizes = {{.image_size = 16, .share = 0.25},
                                        {.image_size = 64, .share = 0.75, .from_epoch = 1}},
                              .steps = 3,
                              .fractions = 2,
                              .schemes = {}};
  options.set_up = [&](int64_t batch, int64_t image_size, const std::function<Status()>& create) {
    nets.emplace_back(batch, image_size);
    return create();
  };
  const auto facts = MeasureFacts(TinyConfig({}), options);
  ASSERT_TRUE(facts.ok()) << facts.status().message();
  EXPECT_THAT(nets, ElementsAre(Pair(2, 16), Pair(4, 16), Pair(2, 64), Pair(4, 64)));
  EXPECT_EQ(facts->image_size(), 16);
  ASSERT_EQ(facts->step_size(), 2);
  ASSERT_EQ(facts->further_size_size(), 1);
  const SizeFacts& large = facts->further_size(0);
  EXPECT_EQ(large.image_size(), 64);
  EXPECT_EQ(large.share(), 0.75);
  ASSERT_EQ(large.step_size(), 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(large.step(i).batch(), facts->step(i).batch());
    EXPECT_EQ(large.step(i).finish_s_size(), facts->parameter_size());
  }
  EXPECT_TRUE(CheckFacts(*facts, nullptr).ok());
}

// With accumulation sides must be multiples of 4.
TEST(MeasureFactsTest, StepsAreWholeWherePartsAreNotAllowed) {
  EXPECT_FALSE(FactsOf({}).whole_steps());
  EXPECT_TRUE(FactsOf({"train.phase[0].image_size=26"}).whole_steps());
  EXPECT_TRUE(FactsOf({"data.image_size=18"}).whole_steps());
}

TEST(MeasureFactsTest, NormsWhoseSumsAreOfAllRanks) {
  EXPECT_THAT(FactsOf({}).synchronized_channels(), IsEmpty());
  EXPECT_THAT(FactsOf({"dist.sync_batch_norm=true"}).synchronized_channels(), ElementsAre(8));
}

}  // namespace
}  // namespace ringtail
