// Terms of a step that are counted once, or for each part or round.
#include <gmock/gmock.h>
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

// Two images of a rank take 2 + 4 s each, one by one, or 4 + 9 s at once; the gradient is finished after the first of the 4 or 9 s, and
// travels beside the others.
TEST(StepTermsTest, PartsThatComputeFasterHideLessOfTheExchange) {
  PlannerFacts facts = FactsOfOneParameter(/*update_s=*/1);
  StepFacts* const one = facts.mutable_step(0);
  one->set_finish_s(0, 1);
  StepFacts* const two = facts.add_step();
  two->set_batch(2);
  two->set_forward_s(2 * one->forward_s());
  two->set_backward_s(9);
  two->add_finish_s(1);
  const Choice choice{.hosts = 2, .global_batch = 4};
  const auto parts = [&](double exchange_seconds) {
    NetworkFacts network{.hosts = 2, .cores_per_host = 1};
    network.links.between_hosts.latency_s = exchange_seconds;
    return StepSimulator(facts, network).Simulate(choice)->parts;
  };
  EXPECT_EQ(parts(0), 2);
  EXPECT_EQ(parts(100), 1);
  Choice rounds = choice;  // hides nothing, or in other steps
  rounds.rounds = true;
  NetworkFacts slow{.hosts = 2, .cores_per_host = 1};
  slow.links.between_hosts.latency_s = 100;
  EXPECT_EQ(StepSimulator(facts, slow).Simulate(rounds)->parts, 2);
}

// Two norms, of two parts, whose sums cross a wire of 1 s and back in forward and in backward.
TEST(StepTermsTest, BatchNormWaitsForTheSumsOfAllRanks) {
  PlannerFacts facts = FactsOfOneParameter(/*update_s=*/1);
  facts.set_whole_steps(true);
  NetworkFacts network{.hosts = 2, .cores_per_host = 1};
  network.links.between_hosts.latency_s = 1;
  const auto simulate = [&] {
    return StepSimulator(facts, network).Simulate({.hosts = 2, .global_batch = 4}).value();
  };
  const Prediction own = simulate();
  EXPECT_EQ(own.seconds.batch_norm, 0);
  for (const int64_t channels : {8, 16}) facts.add_synchronized_channels(channels);
  const Prediction synchronized = simulate();
  ASSERT_EQ(synchronized.parts, 2);
  EXPECT_NEAR(synchronized.seconds.batch_norm, 2 * 2 * 2 * 1, 1e-6);
  EXPECT_NEAR(synchronized.seconds.sum(), own.seconds.sum() + 8, 1e-6);
  EXPECT_GT(synchronized.sent_bytes, own.sent_bytes + 8 * 2 * 8 * 8);  // doubles
  EXPECT_THAT(CriticalPath(synchronized), testing::HasSubstr("batch norm 8000.0"));
  EXPECT_EQ(StepSimulator(facts, network).Simulate({.global_batch = 4})->seconds.batch_norm, 0);
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
