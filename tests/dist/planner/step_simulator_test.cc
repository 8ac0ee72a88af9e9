#include "dist/planner/step_simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "tests/dist/planner/planner_facts.h"

namespace ringtail {
namespace {

constexpr int kTrials = 10'000;
constexpr double kSlack = 1e-9;

// A choice that the facts of RandomFacts know.
Choice RandomChoice(int hosts, Rng* rng) {
  Choice choice{.hosts = hosts,
                .global_batch = hosts * (1 + static_cast<int64_t>(rng->Below(20))),
                .algorithm = "ring",
                .buckets = {.bytes = 1 + static_cast<int64_t>(rng->Below(400'000)),
                            .end_bytes = 1 + static_cast<int64_t>(rng->Below(100'000))},
                .scheme = rng->Below(2) == 0 ? "dense" : "linear8",
                .period = 1 << rng->Below(4)};
  choice.overlap = rng->Below(2) == 0;
  choice.rounds = rng->Below(2) == 0;
  return choice;
}

double Seconds(const PlannerFacts& facts, const NetworkFacts& network, const Choice& choice) {
  return StepSimulator(facts, network).Simulate(choice).value().seconds.sum();
}

TEST(StepSimulatorTest, OneRankTakesTheSumOfItsTerms) {
  Rng rng(RngKey(4).With(kTestStream));
  for (int i = 0; i < 100; ++i) {
    const PlannerFacts facts = RandomFacts(&rng);
    const StepFacts& step = facts.step(1);
    const double sum =
        facts.data_wait_s() + step.forward_s() + step.backward_s() + facts.update_s();
    const Choice choice{.global_batch = step.batch()};
    EXPECT_NEAR(Seconds(facts, RandomNetwork(1, 1, &rng), choice), sum, kSlack * sum);
  }
}

TEST(StepSimulatorTest, AnInfinitelyFastNetworkLeavesTheComputation) {
  Rng rng(RngKey(5).With(kTestStream));
  for (int i = 0; i < 100; ++i) {
    PlannerFacts facts = RandomFacts(&rng);
    facts.clear_step_deviation();
    Choice choice = RandomChoice(8, &rng);
    choice.scheme = kDenseScheme;
    const Choice alone{.global_batch = choice.global_batch / 8};
    const double own = Seconds(facts, {.hosts = 8}, alone) * choice.period;
    // A round averages weights once.
    const double averages = facts.average_s() * (choice.period - 1);
    const double end = choice.has_rounds() ? facts.merge_s() - averages : 0;
    EXPECT_NEAR(Seconds(facts, {.hosts = 8}, choice), own + end, kSlack * own);
  }
}

// What is left of a step that computes almost nothing are the plans, one after another.
TEST(StepSimulatorTest, WithoutComputationTheStepIsItsCollectives) {
  Rng rng(RngKey(6).With(kTestStream));
  for (int trial = 0; trial < 50; ++trial) {
    PlannerFacts facts = RandomFacts(&rng);
    facts.set_cores(1e-9);  // so that a core of the rank is a billion times as fast
    facts.clear_wake_delay_s();
    facts.clear_scheme();
    const NetworkFacts network = RandomNetwork(5, 1, &rng);
    const Choice choice{.hosts = 5, .global_batch = 20, .buckets = {.bytes = 1, .end_bytes = 1}};
    CollectivePrices prices = CollectivePrices::Create("auto", {.hosts = 5}, network.links).value();
    double sum = prices.Allreduce(6).seconds + prices.Allreduce(facts.buffer_elements()).seconds +
                 prices.Allgather(5 * 22).seconds;
    for (const GradientBucket& bucket : MakeGradientBuckets(ParametersOf(facts), choice.buckets)) {
      sum += prices.Allreduce(bucket.range.count).seconds;
    }
    NetworkFacts free = network;
    free.sending = {};
    EXPECT_NEAR(Seconds(facts, free, choice), sum, 1e-6 * sum);
  }
}

TEST(StepSimulatorTest, StaysBetweenItsBounds) {
  Rng rng(RngKey(7).With(kTestStream));
  for (int trial = 0; trial < kTrials / 5; ++trial) {
    const PlannerFacts facts = RandomFacts(&rng);
    const int hosts = 2 + static_cast<int>(rng.Below(7));
    StepSimulator simulator(facts, RandomNetwork(hosts, rng.Uniform(0.3F, 4), &rng));
    for (int i = 0; i < 5; ++i) {
      const Choice choice = RandomChoice(hosts, &rng);
      const Prediction prediction = simulator.Simulate(choice).value();
      const double seconds = prediction.seconds.sum();
      ASSERT_LE(simulator.LeastSeconds(choice).value(), seconds * (1 + kSlack)) << Describe(choice);
      ASSERT_GE(WithoutOverlap(prediction, facts), seconds * (1 - kSlack)) << Describe(choice);
    }
  }
}

// A slower network is never faster: by 10^4 random timetables, networks and choices. (With one
// algorithm, and worlds in which both allgathers cost the same: a choice may change to an algorithm
// that takes less of the cores, or was the cheaper one before.)
TEST(StepSimulatorTest, RisesWithLatencyAndSecondsPerByte) {
  Rng rng(RngKey(8).With(kTestStream));
  for (int trial = 0; trial < kTrials; ++trial) {
    const PlannerFacts facts = RandomFacts(&rng);
    const int hosts = 2 + static_cast<int>(rng.Below(2));
    NetworkFacts network = RandomNetwork(hosts, rng.Uniform(0.5F, 4), &rng);
    Choice choice = RandomChoice(hosts, &rng);
    choice.scheme = kDenseScheme;
    const double before = Seconds(facts, network, choice);
    LinkModel& link = network.links.between_hosts;
    (trial % 2 == 0 ? link.latency_s : link.seconds_per_byte) *= 1 + rng.Uniform();
    ASSERT_GE(Seconds(facts, network, choice), before * (1 - kSlack)) << Describe(choice);
  }
}

// The same buckets with more in them: each parameter has a whole number of 16 elements more.
TEST(StepSimulatorTest, RisesWithBytes) {
  Rng rng(RngKey(9).With(kTestStream));
  for (int trial = 0; trial < kTrials; ++trial) {
    PlannerFacts facts = RandomFacts(&rng);
    facts.clear_scheme();
    const int hosts = 2 + static_cast<int>(rng.Below(3));
    const NetworkFacts network = RandomNetwork(hosts, rng.Uniform(0.5F, 4), &rng);
    Choice choice = RandomChoice(hosts, &rng);
    choice.scheme = kDenseScheme;
    choice.buckets = {.bytes = 1, .end_bytes = 1};  // one parameter each, whatever its size
    const double before = Seconds(facts, network, choice);
    ParameterFacts* const grown =
        facts.mutable_parameter(static_cast<int>(rng.Below(facts.parameter_size())));
    grown->set_dimension(0, grown->dimension(0) * 2);
    ASSERT_GE(Seconds(facts, network, choice), before * (1 - kSlack)) << Describe(choice);
  }
}

TEST(StepSimulatorTest, OverlappedRoundsHideTheExchange) {
  Rng rng(RngKey(10).With(kTestStream));
  const PlannerFacts facts = RandomFacts(&rng);
  NetworkFacts network = RandomNetwork(4, 8, &rng);
  network.sending = {};
  StepSimulator simulator(facts, network);
  Choice choice{.hosts = 4, .global_batch = 64, .period = 1024, .overlap = true};
  const Prediction hidden = simulator.Simulate(choice).value();
  EXPECT_EQ(hidden.seconds.wire, 0);
  EXPECT_NEAR(hidden.seconds.contention, 0, 1e-9);
  EXPECT_GT(hidden.communication, 0);
  choice.overlap = false;
  const Prediction blocking = simulator.Simulate(choice).value();
  EXPECT_NEAR(blocking.seconds.wire, blocking.communication, 1e-9 * blocking.communication);
  EXPECT_EQ(hidden.images, 1024 * 64);
  choice.period = 1;
  EXPECT_GT(simulator.Simulate(choice).value().bytes_per_image(), 900 * hidden.bytes_per_image());
}

// Worked by hand: one core computes 2 s forward, 4 backward and 1 for the update. Two ranks send 1 s of
// gradients, which backward hides; of a round of one step nothing does, nor the half a second of running
// statistics, and it is merged for 3 s. Two steps have one such exchange.
TEST(StepSimulatorTest, ARoundExchangesStatisticsToo) {
  PlannerFacts facts;
  facts.set_cores(1);
  facts.set_update_s(1);
  facts.set_merge_s(3);
  facts.set_buffer_elements(800);
  facts.add_parameter()->add_dimension(1'600);
  StepFacts* const step = facts.add_step();
  step->set_batch(1);
  step->set_forward_s(2);
  step->set_backward_s(4);
  step->add_finish_s(1);
  NetworkFacts network{.hosts = 2, .cores_per_host = 1};
  network.links.between_hosts.seconds_per_byte = 1.0 / 6'400;
  StepSimulator simulator(facts, network);
  const auto simulate = [&](int period, bool overlap, bool rounds) {
    Choice choice{.hosts = 2, .global_batch = 2, .algorithm = "ring", .period = period};
    choice.overlap = overlap;
    choice.rounds = rounds;
    return simulator.Simulate(choice).value();
  };
  EXPECT_NEAR(simulate(1, false, false).seconds.wire, 0, 0.01);
  const Prediction one = simulate(1, false, true), two = simulate(2, false, true);
  constexpr double kRollCall = 88.0 / 6'400;
  EXPECT_NEAR(one.seconds.wire, 1.5 + kRollCall, 1e-9);
  EXPECT_EQ(one.seconds.merge, 3);
  EXPECT_EQ(one.seconds.roll_call, 0);
  EXPECT_NEAR(one.sent_bytes, 9'600, 1e-9);
  EXPECT_NEAR(one.seconds.sum(), 7 + 1.5 + kRollCall + 3, 1e-9);
  EXPECT_NEAR(two.seconds.sum(), 14 + 1.5 + kRollCall + 3, 1e-9);
  EXPECT_EQ(simulate(1, true, true).seconds.wire, 0);
}

// Worked by hand: a rank computes 7 s, 0.7 more or less; of two the slower one takes 0.7 / sqrt(pi) longer
// than the mean. Four steps vary twice as much in all; while the next round is computed, no one waits.
TEST(StepSimulatorTest, AllWaitForTheSlowestRank) {
  PlannerFacts facts = FactsOfOneParameter(/*update_s=*/1);
  facts.set_step_deviation(0.1);
  StepSimulator simulator(facts, {.hosts = 2, .cores_per_host = 1});
  const auto simulate = [&](int period, bool overlap) {
    Choice choice{.hosts = 2, .global_batch = 2, .period = period};
    choice.overlap = overlap;
    return simulator.Simulate(choice).value().seconds;
  };
  const double slower = 0.7 / std::sqrt(std::numbers::pi);
  EXPECT_NEAR(simulate(1, false).waiting, slower, 1e-6);
  EXPECT_NEAR(simulate(1, false).sum(), 7 + slower, 1e-6);
  EXPECT_NEAR(simulate(4, false).sum(), 28 + 2 * slower, 1e-6);
  EXPECT_NEAR(simulate(4, true).sum(), 28, 1e-6);
  EXPECT_EQ(simulator.Simulate({.global_batch = 1}).value().seconds.waiting, 0);
}

// An allgather among four ranks is two rounds: 1.5 s of them travel beside the update of a step, which is
// longer by the norm that comes before; a round's travels before its differences.
TEST(StepSimulatorTest, TheRollCallTravelsBesideTheUpdate) {
  PlannerFacts facts = FactsOfOneParameter(/*update_s=*/1.75);
  facts.set_norm_s(0.25);
  NetworkFacts network{.hosts = 4, .cores_per_host = 1};
  network.links.between_hosts.latency_s = 1;
  StepSimulator simulator(facts, network);
  Choice choice{.hosts = 4, .global_batch = 4};
  EXPECT_NEAR(simulator.Simulate(choice)->seconds.roll_call, 2 - 1.5, 1e-9);
  choice.rounds = true;
  const Prediction round = simulator.Simulate(choice).value();
  EXPECT_EQ(round.seconds.roll_call, 0);
  EXPECT_NEAR(round.seconds.wire, round.communication, 1e-9);
  EXPECT_GE(round.seconds.wire, 2);
}

// Worked by hand: 2.8 million parameters (11.2 MB), whose gradients are all finished when backward is;
// hosts of 8 cores that compute 256 images in 141 ms and update in 8 ms; 0.949 of 1 Gbit/s. A ring
// takes 2 (N - 1) / N 11.2 MB / 118.6 MB/s, 165 ms for 8 hosts, so that all are slower than one, and
// seven local steps of 26 ms hide it where six do not.
TEST(StepSimulatorTest, OnGigabitEthernetMoreHostsAreSlower) {
  PlannerFacts facts;
  facts.set_cores(8);
  facts.set_update_s(0.008);
  facts.add_parameter()->add_dimension(2'800'000);
  for (const int64_t batch : {8, 256}) {
    StepFacts* const step = facts.add_step();
    step->set_batch(batch);
    step->set_forward_s(0.047 * static_cast<double>(batch) / 256);
    step->set_backward_s(0.094 * static_cast<double>(batch) / 256);
    step->add_finish_s(step->backward_s());
  }
  NetworkFacts network{.hosts = 32, .cores_per_host = 8};
  network.links.between_hosts.seconds_per_byte = 8 / (0.949 * 1e9);
  StepSimulator simulator(facts, network);
  const double alone = simulator.Simulate({.global_batch = 256}).value().images_per_s();
  for (const auto& [hosts, speed_up] :
       {std::pair(4, 0.80), std::pair(8, 0.78), std::pair(16, 0.77), std::pair(32, 0.76)}) {
    const Prediction dense = simulator.Simulate({.hosts = hosts, .global_batch = 256}).value();
    EXPECT_NEAR(dense.images_per_s() / alone, speed_up, 0.01) << hosts;
  }
  Choice rounds{.hosts = 8, .global_batch = 256, .period = 6, .overlap = true};
  EXPECT_GT(simulator.Simulate(rounds).value().seconds.wire, 0);
  rounds.period = 7;
  const Prediction hidden = simulator.Simulate(rounds).value();
  EXPECT_EQ(hidden.seconds.wire, 0);
  EXPECT_NEAR(hidden.images_per_s() / alone, 5.8, 0.05);
}

// Worked by hand: one core computes 2 s and updates for 3, of which it can prepare 2 of the first
// parameter, whose bucket travels from 1 s on for 1 s; the second one's from 2 s on, for 4 s.
TEST(StepSimulatorTest, TheUpdateIsPreparedWhileTheLastBucketTravels) {
  PlannerFacts facts;
  facts.set_cores(1);
  facts.set_update_s(3);
  for (const int64_t elements : {1'600, 6'400}) facts.add_parameter()->add_dimension(elements);
  StepFacts* const step = facts.add_step();
  step->set_batch(1);
  step->set_forward_s(0.25);
  step->set_backward_s(2);
  step->add_finish_s(1);
  step->add_finish_s(2);
  NetworkFacts network{.hosts = 2, .cores_per_host = 1};
  network.links.between_hosts.seconds_per_byte = 1.0 / 6'400;  // two ranks send all of a bucket
  const Choice choice{
      .hosts = 2, .global_batch = 2, .algorithm = "ring", .buckets = {.bytes = 1, .end_bytes = 1}};
  const double before = StepSimulator(facts, network).Simulate(choice)->seconds.sum();
  facts.add_prepare_s(2);
  facts.add_prepare_s(1);
  const Prediction prepared = StepSimulator(facts, network).Simulate(choice).value();
  EXPECT_NEAR(before - prepared.seconds.sum(), 2, 1e-9);
  EXPECT_EQ(prepared.seconds.update, 3);
  EXPECT_NEAR(prepared.seconds.wire, 2, 1e-9);
  // Of what is prepared, 2 of 3 s are, so that so much of the detour is made.
  facts.set_preparing_s(0.75);
  EXPECT_NEAR(StepSimulator(facts, network).Simulate(choice)->seconds.update, 3.5, 1e-9);
}

TEST(StepSimulatorTest, TheTermOfSharedCoresCanBeLeftOut) {
  Rng rng(RngKey(11).With(kTestStream));
  const PlannerFacts facts = RandomFacts(&rng);
  NetworkFacts network = RandomNetwork(4, 1, &rng);
  network.sending.per_byte = 5e-9;
  Choice choice{.hosts = 4, .global_batch = 64, .buckets = {.bytes = 1, .end_bytes = 1}};
  StepSimulator with(facts, network), without(facts, network, {.shares_cores = false});
  for (const char* const scheme : {kDenseScheme, "linear8"}) {
    choice.scheme = scheme;
    EXPECT_GT(with.Simulate(choice).value().seconds.contention, 0) << scheme;
    EXPECT_NEAR(without.Simulate(choice).value().seconds.contention, 0, 1e-15) << scheme;
  }
}

// On a fast network whose ranks have little of a processor, as small a change that travels in more
// messages takes longer.
TEST(StepSimulatorTest, MessagesTakeProcessorTime) {
  Rng rng(RngKey(13).With(kTestStream));
  PlannerFacts facts = RandomFacts(&rng);
  facts.clear_prepare_s();
  facts.clear_wake_delay_s();
  NetworkFacts network = RandomNetwork(4, 0.25, &rng);
  network.links.between_hosts = {.seconds_per_byte = 1e-12};
  network.sending = {};
  const Choice one{.hosts = 4, .global_batch = 64, .algorithm = "ring"};
  const double free = Seconds(facts, network, one);
  network.sending.per_message = 1e-3;
  // Statistics, loss, and a bucket or more: six messages each; three of the roll call.
  constexpr double kLeast = (6 + 6 + 6 + 3) * 1e-3 / 0.25;
  EXPECT_GE(Seconds(facts, network, one), free + kLeast * (1 - 1e-6));
  Choice many = one;
  many.buckets = {.bytes = 1, .end_bytes = 1};  // a parameter each
  const int more = facts.parameter_size() -
                   static_cast<int>(MakeGradientBuckets(ParametersOf(facts), one.buckets).size());
  ASSERT_GT(more, 0);
  EXPECT_NEAR(Seconds(facts, network, many), Seconds(facts, network, one) + more * 6e-3 / 0.25,
              1e-3 * more);
}

TEST(StepSimulatorTest, RefusesChoicesThatTheFactsDoNotKnow) {
  Rng rng(RngKey(12).With(kTestStream));
  StepSimulator simulator(RandomFacts(&rng), RandomNetwork(4, 1, &rng));
  const auto refusal = [&](const Choice& choice) {
    return simulator.Simulate(choice).status().message();
  };
  EXPECT_THAT(refusal({.hosts = 5, .global_batch = 8}), testing::HasSubstr("5 hosts of 4"));
  EXPECT_THAT(refusal({.hosts = 4, .global_batch = 3}), testing::HasSubstr("too small"));
  EXPECT_THAT(refusal({.hosts = 4, .global_batch = 8, .scheme = "top_k"}),
              testing::HasSubstr("they have dense, linear8"));
  EXPECT_THAT(refusal({.hosts = 4, .global_batch = 8, .algorithm = "x"}),
              testing::HasSubstr("unknown allreduce algorithm"));
}

}  // namespace
}  // namespace ringtail
