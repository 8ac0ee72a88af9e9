#include "dist/planner/divided_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dist/planner/search.h"
#include "dist/planner/step_simulator.h"
#include "dist/planner/step_timetable.h"

namespace ringtail {
namespace {

using testing::ElementsAre;

// A convolution, and two linear layers of 9,216 -> 4,096 -> 2: AlexNet's first and last.
PlannerFacts Facts() {
  PlannerFacts facts;
  facts.set_cores(8);
  facts.set_update_s(0.020);
  facts.set_elementwise_update(true);
  const auto add = [&](const char* name, ParameterFacts::Kind kind,
                       const std::vector<int64_t>& shape) {
    ParameterFacts* const p = facts.add_parameter();
    p->set_name(name);
    p->set_kind(kind);
    for (const int64_t dimension : shape) p->add_dimension(dimension);
  };
  add("head.weight", ParameterFacts::LINEAR_WEIGHT, {2, 4096});
  add("head.bias", ParameterFacts::VECTOR, {2});
  add("large.weight", ParameterFacts::LINEAR_WEIGHT, {4096, 9216});
  add("large.bias", ParameterFacts::VECTOR, {4096});
  add("conv.weight", ParameterFacts::CONVOLUTION_WEIGHT, {256, 256, 3, 3});
  StepFacts* const step = facts.add_step();
  step->set_batch(32);
  step->set_forward_s(0.010);
  step->set_backward_s(0.020);
  for (const double at : {0.002, 0.002, 0.006, 0.006, 0.020}) step->add_finish_s(at);
  return facts;
}

NetworkFacts Gigabit(int hosts) {
  NetworkFacts network{.hosts = hosts};
  network.links.between_hosts = {.latency_s = 50e-6, .seconds_per_byte = 8e-9};
  network.links.within_host = network.links.between_hosts;
  return network;
}

TEST(DividedLayersTest, BytesByHand) {
  // 4 ranks, 32 images: 2 x 3 x 32 x (9,216 + 4,096 / 4) floats, or 2 x 3/4 of the weights.
  const LinearSize large{.outputs = 4096, .inputs = 9216};
  EXPECT_EQ(DividedBytes(large, 32, 4), 2 * 3 * 32 * (9216 + 1024) * 4);
  EXPECT_EQ(GradientBytes(large, 4), 2 * 3 * 1024 * 9217 * 4);
  EXPECT_TRUE(IsWorthDividing(large, 32, 4));
  EXPECT_FALSE(IsWorthDividing(large, 32, 1));
  // With so many images the activations are larger.
  EXPECT_FALSE(IsWorthDividing(large, 1024, 4));
  EXPECT_FALSE(IsWorthDividing({.outputs = 2, .inputs = 4096}, 32, 4));  // an output for each rank
}

TEST(DividedLayersTest, AWeightIsDividedWithItsBias) {
  const std::vector<Parameter> parameters = ParametersOf(Facts());
  const NetworkFacts network = Gigabit(4);
  CollectivePrices prices = CollectivePrices::Create("ring", {.hosts = 4}, network.links).value();
  const DividedLayers divided = DivideLayers(parameters, 32, 4, &prices);
  EXPECT_THAT(divided.kept, ElementsAre(0, 1, 4));
  EXPECT_NEAR(divided.share, 4096.0 * 9217 / (4096.0 * 9217 + 2 * 4097 + 256 * 256 * 9), 1e-12);
  EXPECT_NEAR(divided.sent_bytes, static_cast<double>(DividedBytes({4096, 9216}, 32, 4)), 1e-3);
  // At 1 Gbit/s each byte takes 8 ns, forward and backward half of them each.
  EXPECT_NEAR(divided.forward_seconds, divided.sent_bytes / 2 * 8e-9, 2e-3);
  EXPECT_EQ(divided.forward_seconds, divided.backward_seconds);
}

TEST(DividedLayersTest, OnASlowNetworkTheyAreFaster) {
  StepSimulator simulator(Facts(), Gigabit(4));
  Choice choice{.hosts = 4, .global_batch = 128};
  const Prediction dense = simulator.Simulate(choice).value();
  choice.divided = true;
  const Prediction divided = simulator.Simulate(choice).value();
  // 230 MB of gradients a step, or 7.9 MB of activations and 3.6 of the convolution's gradients.
  EXPECT_NEAR(dense.sent_bytes, 230e6, 2e6);
  EXPECT_NEAR(divided.sent_bytes, 11.5e6, 0.5e6);
  EXPECT_GT(divided.images_per_s(), 1.5 * dense.images_per_s());
  EXPECT_LT(divided.seconds.update, dense.seconds.update / 3);  // a rank updates a quarter
  EXPECT_GT(divided.seconds.activations, 0.050);
  EXPECT_THAT(CriticalPath(divided), testing::HasSubstr("activations 6"));
  EXPECT_EQ(Describe(choice), "4 hosts, linear layers divided, every step");
  EXPECT_LE(simulator.LeastSeconds(choice).value(), divided.seconds.sum());
}

TEST(DividedLayersTest, ASearchFindsThemIfTheOptimizerAllows) {
  PlannerFacts facts = Facts();
  const NetworkFacts network = Gigabit(4);
  StepSimulator simulator(facts, network);
  const SearchSpace space = DefaultSpace(facts, network, 128, /*most_period=*/1);
  EXPECT_TRUE(Search(&simulator, space).value().recommended.choice.divided);
  facts.set_elementwise_update(false);
  const SearchSpace whole = DefaultSpace(facts, network, 128, /*most_period=*/1);
  EXPECT_FALSE(Search(&simulator, whole).value().recommended.choice.divided);
}

TEST(DividedLayersTest, RoundsAndSchemesAreRefused) {
  StepSimulator simulator(Facts(), Gigabit(4));
  EXPECT_FALSE(
      simulator.Simulate({.hosts = 4, .global_batch = 128, .period = 2, .divided = true}).ok());
}

}  // namespace
}  // namespace ringtail
