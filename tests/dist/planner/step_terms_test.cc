// Terms of a step that are counted once, or for each part or round.
#include <gtest/gtest.h>

#include "dist/planner/step_simulator.h"
#include "tests/dist/planner/planner_facts.h"

namespace ringtail {
namespace {

TEST(StepTermsTest, ARoundAveragesWeightsOnce) {
  PlannerFacts facts = FactsOfOneParameter(/*update_s=*/1);
  facts.set_average_s(0.5);
  StepSimulator simulator(facts, {.hosts = 2, .cores_per_host = 1});
  Choice choice{.hosts = 2, .global_batch = 2};
  EXPECT_EQ(simulator.Simulate(choice)->seconds.update, 1);
  choice.period = 4;
  EXPECT_EQ(simulator.Simulate(choice)->seconds.update, 4 * 0.5 + 0.5);
}

TEST(StepTermsTest, EachPartOfAStepButTheFirstAddsUpGradients) {
  PlannerFacts facts = FactsOfOneParameter(/*update_s=*/1);
  const auto backward = [&](int64_t batch) {
    return StepSimulator(facts, {}).Simulate({.global_batch = batch})->seconds.backward;
  };
  EXPECT_EQ(backward(3), 3 * 4);
  facts.set_accumulate_s(0.25);
  EXPECT_EQ(backward(1), 4);
  EXPECT_EQ(backward(3), 3 * 4 + 2 * 0.25);
}

// Two ranks that gather: each sets the sum to zero once, and adds two payloads.
TEST(StepTermsTest, SumsAreClearedOnce) {
  PlannerFacts facts = FactsOfOneParameter(/*update_s=*/1);
  facts.mutable_parameter(0)->set_kind(ParameterFacts::LINEAR_WEIGHT);
  facts.mutable_parameter(0)->add_dimension(16);
  SchemeFacts* const scheme = facts.add_scheme();
  scheme->set_name("linear8");
  scheme->mutable_compression()->mutable_scheme()->mutable_linear8();
  scheme->mutable_compression()->set_route(CompressionConfig::GATHER);
  scheme->mutable_compression()->set_min_elements(1);
  scheme->mutable_compression()->set_fall_back(false);
  scheme->add_encode_s(0.5);
  scheme->add_decode_s(0.25);
  const Choice choice{.hosts = 2, .global_batch = 2, .scheme = "linear8"};
  const NetworkFacts network{.hosts = 2, .cores_per_host = 1};
  const double before = StepSimulator(facts, network).Simulate(choice)->communication;
  EXPECT_NEAR(before, 0.5 + 2 * 0.25, 1e-6);
  scheme->add_clear_s(0.125);
  EXPECT_NEAR(StepSimulator(facts, network).Simulate(choice)->communication, before + 0.125, 1e-9);
}

}  // namespace
}  // namespace ringtail
