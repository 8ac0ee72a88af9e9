// What a run of several hosts is told before its first step.
#include "apps/plan/run_advice.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dist/planner/facts_file.h"
#include "dist/planner/step_simulator.h"

namespace ringtail {
namespace {

using testing::HasSubstr;
using testing::Not;

// 2 million weights; 32 images take 60 ms and the optimizer 10 ms.
PlannerFacts Facts() {
  return ParseFacts(R"(
      cores: 1  update_s: 0.01  merge_s: 0.002
      parameter { name: "w" dimension: 1000 dimension: 2000 kind: LINEAR_WEIGHT }
      step { batch: 32 forward_s: 0.02 backward_s: 0.04 finish_s: 0.04 })",
                    "facts")
      .value();
}

NetworkFacts Network(double bytes_per_s) {
  const LinkModel link{.latency_s = 1e-4, .seconds_per_byte = 1 / bytes_per_s};
  return {.links = {.within_host = link, .between_hosts = link}, .hosts = 8, .cores_per_host = 1};
}

// What a plan would choose from.
SearchSpace Space() { return {.global_batches = {256}, .periods = {1, 8, 64}}; }

Choice EightHosts() { return {.hosts = 8, .global_batch = 256}; }

TEST(RunAdvice, OnlyStepsBeforeRoundsAreOfAllRanks) {
  const Choice set{.hosts = 8, .global_batch = 256, .period = 8, .overlap = true, .rounds = true};
  EXPECT_EQ(WithRounds(set, 8), set);
  EXPECT_EQ(Describe(WithRounds(set, 1)), "8 hosts, dense, 1 local step, overlapped");
  EXPECT_EQ(WithRounds(set, 0), EightHosts());
  Choice blocking = set;
  blocking.overlap = false;
  EXPECT_EQ(Describe(WithRounds(blocking, 1)), "8 hosts, dense, 1 local step");
}

// Of 256 images by speed: a fast host has 48, and the seven others, with 29 or 30, take as long.
TEST(RunAdvice, AStepIsAsLongAsThisRanksShareTakes) {
  const Choice fast = WithShare(EightHosts(), 48, 8);
  EXPECT_EQ(fast.global_batch, 384);
  StepSimulator simulator(Facts(), Network(1e9));
  const auto even = simulator.Simulate(EightHosts()), own = simulator.Simulate(fast);
  ASSERT_TRUE(even.ok() && own.ok());
  EXPECT_DOUBLE_EQ(own->seconds.forward, 1.5 * even->seconds.forward);
  EXPECT_EQ(WithShare(EightHosts(), 0, 8).global_batch, 8) << "a rank without images";
}

TEST(RunAdvice, NothingIfHostsAreFasterTogether) {
  const auto advice = AdviseOn(Facts(), Network(1e9), EightHosts(), Space(), "--plan auto");
  ASSERT_TRUE(advice.ok()) << advice.status().message();
  EXPECT_EQ(*advice, std::nullopt);
}

// 8 MB over 5 MB/s: 2.8 s a step, where one host takes half a second.
TEST(RunAdvice, SlowNetworksAreNamedWithTheFlagToSet) {
  const auto advice = AdviseOn(Facts(), Network(5e6), EightHosts(), Space(), "--plan auto");
  ASSERT_TRUE(advice.ok()) << advice.status().message();
  ASSERT_TRUE(*advice);
  EXPECT_THAT(**advice, HasSubstr("8 hosts, dense, every step: predicted"));
  EXPECT_THAT(**advice, HasSubstr("times one host alone"));
  EXPECT_THAT(**advice, HasSubstr("--plan auto"));
}

// 8 MB over 20 MB/s: 0.7 s, where a step of 32 images takes 0.07; one host takes 0.55.
TEST(RunAdvice, AWayThatIsMuchFasterIsNamedThoughHostsAreFasterTogether) {
  const auto advice = AdviseOn(Facts(), Network(50e6), EightHosts(), Space(), "--plan auto");
  ASSERT_TRUE(advice.ok()) << advice.status().message();
  ASSERT_TRUE(*advice);
  EXPECT_THAT(**advice, Not(HasSubstr("times one host alone")));
  EXPECT_THAT(**advice, HasSubstr("local steps, overlapped would make"));
  EXPECT_THAT(**advice, HasSubstr("--plan auto"));
}

TEST(RunAdvice, OneHostIfNothingHelps) {
  const auto advice = AdviseOn(Facts(), Network(5e4), EightHosts(), Space(), "--plan auto");
  ASSERT_TRUE(advice.ok()) << advice.status().message();
  ASSERT_TRUE(*advice);
  EXPECT_THAT(**advice,
              HasSubstr("train on one host, 256 images in a step, or beside hosts that wait: "
                        "--plan auto"));
}

// 256 images on each of eight hosts, as a config of one host trains there. A step of 256 takes them
// 0.49 s, one host 0.49 s for its own 256.
Choice GrownBatch() { return {.hosts = 8, .global_batch = 2048}; }
SearchSpace EveryStep() { return {.global_batches = {256}}; }

// Eight times 256 images in 0.65 s: 3,150 images/s, where a plan with 256 would make 1,100.
TEST(RunAdvice, AGrownBatchThatIsFasterThanAnyPlanIsToldNothing) {
  const auto advice = AdviseOn(Facts(), Network(50e6), GrownBatch(), EveryStep(), "--plan auto");
  ASSERT_TRUE(advice.ok()) << advice.status().message();
  EXPECT_EQ(*advice, std::nullopt);
}

// 2,048 images in 28 s, a tenth of what one host makes of its 256.
TEST(RunAdvice, AGrownBatchThatIsSlowerThanOneHostIsToldOfItsBatch) {
  const auto advice = AdviseOn(Facts(), Network(5e5), GrownBatch(), EveryStep(), "--plan auto");
  ASSERT_TRUE(advice.ok()) << advice.status().message();
  ASSERT_TRUE(*advice);
  EXPECT_THAT(**advice, HasSubstr("times one host alone"));
  EXPECT_THAT(**advice, HasSubstr("; train on one host, 256 images in a step instead of 2048"));
}

// Local rounds of 64 steps need the slow wire a 64th of the time.
TEST(RunAdvice, APlanThatIsFasterThanAGrownBatchNamesBoth) {
  const auto advice = AdviseOn(Facts(), Network(5e6), GrownBatch(), Space(), "--plan auto");
  ASSERT_TRUE(advice.ok()) << advice.status().message();
  ASSERT_TRUE(*advice);
  EXPECT_THAT(**advice, HasSubstr("8 hosts, dense, every step: predicted"));
  EXPECT_THAT(**advice, HasSubstr("with the batch of one host, 256 images in a step of all hosts "
                                  "instead of 2048: --plan auto"));
}

TEST(RunAdvice, ABatchThatAPlanKeepsIsNotNamed) {
  const auto advice = AdviseOn(Facts(), Network(5e6), EightHosts(), Space(), "--plan auto");
  ASSERT_TRUE(advice.ok()) << advice.status().message();
  ASSERT_TRUE(*advice);
  EXPECT_THAT(**advice, Not(HasSubstr("instead of")));
}

// A step in two parts of 16 has half of the backward to hide communication behind, which one part would not.
TEST(RunAdvice, TheRunIsPredictedInItsOwnParts) {
  Choice halves = EightHosts();
  halves.parts = 2;
  StepSimulator simulator(Facts(), Network(50e6));
  EXPECT_EQ(simulator.Simulate(halves)->parts, 2);
  EXPECT_EQ(simulator.Simulate(EightHosts())->parts, 1);
  EXPECT_EQ(simulator.Simulate(WithRounds(halves, 4))->parts, 2);
  halves.parts = -1;
  EXPECT_FALSE(simulator.Simulate(halves).ok());
}

TEST(RunAdvice, OneHostIsToldNothing) {
  NetworkFacts network = Network(5e4);
  network.hosts = 1;
  const auto advice =
      AdviseOn(Facts(), network, {.hosts = 1, .global_batch = 256}, Space(), "--plan auto");
  ASSERT_TRUE(advice.ok()) << advice.status().message();
  EXPECT_EQ(*advice, std::nullopt);
}

ServerPrediction EightServers(const NetworkFacts& network) {
  return PredictServers(Facts(), network, {.batch = 32, .servers = 8});
}

// Three quarters of its steps exchange gradients over 5 MB/s, and are slower than one host.
TEST(RunAdvice, StepsBeforeRoundsCount) {
  const Choice rounds{
      .hosts = 8, .global_batch = 256, .period = 64, .overlap = true, .rounds = true};
  const NetworkFacts network = Network(5e6);
  const auto without = AdviseOn(Facts(), network, rounds, Space(), "--plan auto");
  ASSERT_TRUE(without.ok()) << without.status().message();
  EXPECT_EQ(*without, std::nullopt) << **without;
  const auto advice =
      AdviseOn(Facts(), network, rounds, Space(), "--plan auto", {0.75, WithRounds(rounds, 0)});
  ASSERT_TRUE(advice.ok()) << advice.status().message();
  ASSERT_TRUE(*advice);
  EXPECT_THAT(**advice, HasSubstr("with rounds after 75 % of its steps: 8 hosts, dense, 64 local"));
  // The mean step: three quarters of 2.8 s, where one in rounds takes 0.07.
  StepSimulator simulator(Facts(), network);
  const double step = simulator.Simulate(WithRounds(rounds, 0))->step_seconds();
  const double in_rounds = simulator.Simulate(rounds)->step_seconds();
  EXPECT_THAT(**advice, HasSubstr(fmt::format("predicted {:.4g} images/s",
                                              256 / (0.75 * step + 0.25 * in_rounds))));
}

// Eight workers push and pull 8 MB each over 5 MB/s, in 1.6 s both ways of a link together.
TEST(RunAdvice, ServersThatAreSlowerThanOneHostAreNamed) {
  const NetworkFacts network = Network(5e6);
  const auto advice = AdviseOn(Facts(), network, EightServers(network), Space(), "--plan auto");
  ASSERT_TRUE(advice.ok()) << advice.status().message();
  ASSERT_TRUE(*advice);
  EXPECT_THAT(**advice, HasSubstr("8 workers, servers on 8 of them: predicted"));
  EXPECT_THAT(**advice, HasSubstr("limited by the links of the servers, 0."));
  EXPECT_THAT(**advice, HasSubstr("times one host alone"));
  EXPECT_THAT(**advice, HasSubstr(": --plan auto, unless some hosts are much slower than others"));
}

TEST(RunAdvice, NothingIfServersAreAsFastAsAnything) {
  const NetworkFacts network = Network(1e9);
  const auto advice = AdviseOn(Facts(), network, EightServers(network), Space(), "--plan auto");
  ASSERT_TRUE(advice.ok()) << advice.status().message();
  EXPECT_EQ(*advice, std::nullopt);
}

}  // namespace
}  // namespace ringtail
