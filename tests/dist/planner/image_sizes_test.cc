// Predictions of runs that train images of several sizes.
#include "dist/planner/image_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dist/planner/host_choice.h"
#include "dist/planner/server_model.h"
#include "dist/planner/step_simulator.h"
#include "tests/dist/planner/planner_facts.h"

namespace ringtail {
namespace {

using testing::ElementsAre;

// `facts`, and `share` of all steps with images of `pixels`, of which computing takes `factor` times as long.
void AddSize(int64_t pixels, double share, double factor, PlannerFacts* facts) {
  SizeFacts* const size = facts->add_further_size();
  size->set_image_size(pixels);
  size->set_share(share);
  for (const StepFacts& first : facts->step()) {
    StepFacts* const step = size->add_step();
    *step = first;
    step->set_forward_s(factor * step->forward_s());
    step->set_backward_s(factor * step->backward_s());
    for (double& finish : *step->mutable_finish_s()) finish *= factor;
  }
}

PlannerFacts TwoSizes(Rng* rng) {
  PlannerFacts facts = RandomFacts(rng);
  facts.set_image_size(64);
  facts.set_load_cpu_s(1e-5);
  AddSize(128, 0.75, 4, &facts);
  facts.mutable_further_size(0)->set_load_cpu_s(3e-5);
  facts.mutable_further_size(0)->set_decode_cpu_s(2e-5);
  return facts;
}

TEST(ImageSizesTest, EachIsSeenAsARunOfItsOwn) {
  Rng rng(RngKey(31).With(kTestStream));
  const PlannerFacts facts = TwoSizes(&rng);
  const std::vector<FactsOfSize> sizes = SizesOf(facts);
  ASSERT_EQ(sizes.size(), 2U);
  EXPECT_DOUBLE_EQ(sizes[0].share, 0.25);
  EXPECT_DOUBLE_EQ(sizes[1].share, 0.75);
  EXPECT_EQ(sizes[0].facts.load_cpu_s(), 1e-5);
  EXPECT_EQ(sizes[1].facts.load_cpu_s(), 3e-5);
  EXPECT_EQ(sizes[1].facts.decode_cpu_s(), 2e-5);
  EXPECT_EQ(sizes[1].facts.step(1).forward_s(), 4 * facts.step(1).forward_s());
  EXPECT_EQ(sizes[1].facts.further_size_size(), 0);
  EXPECT_EQ(OfImageSize(facts, 64)->step(0).forward_s(), facts.step(0).forward_s());
  EXPECT_EQ(OfImageSize(facts, 128)->image_size(), 128);
  EXPECT_FALSE(OfImageSize(facts, 96));
}

// Exposed communication, too: with small images all of a slow wire, with large ones less.
TEST(ImageSizesTest, AStepTakesTheMeanOfThoseOfEachSize) {
  Rng rng(RngKey(32).With(kTestStream));
  for (int trial = 0; trial < 200; ++trial) {
    const PlannerFacts facts = TwoSizes(&rng);
    const NetworkFacts network = RandomNetwork(4, 1, &rng);
    const Choice choice{.hosts = 4,
                        .global_batch = 64,
                        .period = 1 << rng.Below(3),
                        .overlap = trial % 2 == 0,
                        .parts = 1 + static_cast<int64_t>(rng.Below(2))};
    const Prediction mean = StepSimulator(facts, network).Simulate(choice).value();
    double seconds = 0, wire = 0, communication = 0;
    for (const auto& [share, of_size] : SizesOf(facts)) {
      const Prediction one = StepSimulator(of_size, network).Simulate(choice).value();
      seconds += share * one.seconds.sum();
      wire += share * one.seconds.wire;
      communication += share * one.communication;
      EXPECT_EQ(mean.images, one.images);
    }
    ASSERT_NEAR(mean.seconds.sum(), seconds, 1e-9 * seconds);
    ASSERT_NEAR(mean.seconds.wire, wire, 1e-9 * seconds);
    ASSERT_NEAR(mean.communication, communication, 1e-9 * seconds);
    EXPECT_EQ(mean.parts, choice.parts);
  }
}

TEST(ImageSizesTest, BoundsHoldOfTheMean) {
  Rng rng(RngKey(33).With(kTestStream));
  for (int trial = 0; trial < 500; ++trial) {
    const PlannerFacts facts = TwoSizes(&rng);
    StepSimulator simulator(facts, RandomNetwork(5, rng.Uniform(0.3F, 4), &rng));
    const Choice choice{.hosts = 5,
                        .global_batch = 5 + static_cast<int64_t>(rng.Below(95)),
                        .period = 1 << rng.Below(3),
                        .overlap = trial % 2 == 0};
    const Prediction prediction = simulator.Simulate(choice).value();
    const double seconds = prediction.seconds.sum();
    ASSERT_LE(simulator.LeastSeconds(choice).value(), seconds * (1 + 1e-9));
    ASSERT_GE(WithoutOverlap(prediction, facts), seconds * (1 - 1e-9));
  }
}

// One rank computes 100 images of 64 pixels in a tenth of a second, or of 128 in ten seconds. All 4 MB of
// gradients take some 2 s: with small images one host is faster alone, over the whole run all of them are.
PlannerFacts MostlyLarge() {
  PlannerFacts facts;
  facts.set_cores(1);
  facts.set_image_size(64);
  ParameterFacts* const parameter = facts.add_parameter();
  parameter->add_dimension(1'000'000);
  StepFacts* const step = facts.add_step();
  step->set_batch(100);
  step->set_forward_s(0.04);
  step->set_backward_s(0.06);
  step->add_finish_s(0.06);
  AddSize(128, 0.9, 100, &facts);
  return facts;
}

NetworkFacts SlowHosts(int hosts) {
  const LinkModel link{.latency_s = 1e-6, .seconds_per_byte = 1 / 4e6};
  return {.links = {.within_host = link, .between_hosts = link}, .hosts = hosts};
}

TEST(ImageSizesTest, ThePlanIsThatOfTheWholeRun) {
  const PlannerFacts facts = MostlyLarge();
  const auto hosts = [](const PlannerFacts& of) {
    return ChooseHosts(of, SlowHosts(4), std::vector<double>(4, 1), {.global_batches = {100}})
        .value()
        .hosts;
  };
  EXPECT_THAT(hosts(*OfImageSize(facts, 64)), ElementsAre(0));
  EXPECT_THAT(hosts(facts), ElementsAre(0, 1, 2, 3));
}

// A host that is slow with all images is slow with the further ones, too.
TEST(ImageSizesTest, SlowHostsAreSlowWithEachSize) {
  const auto one = ChooseHosts(MostlyLarge(), SlowHosts(2), std::vector<double>{1, 20},
                               {.global_batches = {100}})
                       .value();
  EXPECT_THAT(one.hosts, ElementsAre(0));
  const double mean = 0.1 * 0.1 + 0.9 * 10;
  EXPECT_NEAR(one.one_host.seconds.sum(), mean, 1e-9);
  EXPECT_GT(one.dense.seconds.sum(), 20 * mean / 2);
}

TEST(ImageSizesTest, WorkersOfServersComputeTheMean) {
  const ServerChoice choice{.batch = 100, .servers = 2};
  const double images =
      PredictServers(MostlyLarge(), {.hosts = 2}, choice).images_per_s;  // a free network
  EXPECT_NEAR(images, 2 * 100 / (0.1 * 0.1 + 0.9 * 10), 0.01);
}

}  // namespace
}  // namespace ringtail
