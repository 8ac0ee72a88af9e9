#include "dist/planner/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/dist/planner/planner_facts.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

SearchSpace SmallSpace() {
  return {.hosts = {1, 2, 3, 5},
          .global_batches = {16, 64},
          .schemes = {"dense", "linear8"},
          .buckets = {{.bytes = 100'000, .end_bytes = 10'000}, BucketOptions()},
          .algorithms = {"auto", "ring"},
          .periods = {1, 4},
          .keep = 5};
}

// Every choice of the space, simulated.
std::vector<Prediction> Everything(StepSimulator* simulator, const SearchSpace& space) {
  std::vector<Prediction> all;
  const auto add = [&](const Choice& choice) {
    all.push_back(simulator->Simulate(choice).value());
  };
  add({.global_batch = space.global_batches.front()});
  for (const int64_t batch : space.global_batches) {
    for (const int hosts : space.hosts) {
      for (const std::string& scheme : space.schemes) {
        for (const BucketOptions& buckets : space.buckets) {
          for (const std::string& algorithm : space.algorithms) {
            for (const int period : space.periods) {
              for (const bool overlap : {false, true}) {
                if (hosts == 1 || (overlap && period == 1)) continue;
                add({hosts, batch, algorithm, buckets, scheme, period, overlap});
              }
            }
          }
        }
      }
    }
  }
  return all;
}

// Images per second, fastest first, of the fastest of those that train alike.
std::vector<double> Rates(const std::vector<Prediction>& all) {
  std::map<std::tuple<int, int64_t, std::string, int, bool>, double> fastest;
  for (const Prediction& p : all) {
    const Choice& c = p.choice;
    double& rate = fastest[{c.hosts, c.global_batch, c.scheme, c.period, c.overlap}];
    rate = std::max(rate, p.images_per_s());
  }
  std::vector<double> rates;
  rates.reserve(fastest.size());
  for (const auto& [choice, rate] : fastest) rates.push_back(rate);
  std::ranges::sort(rates, std::greater<>());
  return rates;
}

TEST(SearchTest, FindsWhatBruteForceFinds) {
  Rng rng(RngKey(13).With(kTestStream));
  int64_t pruned = 0;
  for (int trial = 0; trial < 40; ++trial) {
    StepSimulator simulator(RandomFacts(&rng), RandomNetwork(5, rng.Uniform(0.5F, 8), &rng));
    const SearchSpace space = SmallSpace();
    const std::vector<Prediction> all = Everything(&simulator, space);
    const std::vector<double> rates = Rates(all);
    const SearchResult found = Search(&simulator, space).value();
    ASSERT_EQ(found.best.size(), space.keep);
    for (size_t i = 0; i < space.keep; ++i) {
      EXPECT_DOUBLE_EQ(found.best[i].images_per_s(), rates[i]);
    }
    EXPECT_EQ(found.simulated + found.pruned, std::ssize(all));
    EXPECT_GE(found.best[0].images_per_s(), found.one_host.images_per_s());
    EXPECT_EQ(found.recommended.choice.period, Gentlest(all).choice.period);
    EXPECT_DOUBLE_EQ(found.recommended.images_per_s(), Gentlest(all).images_per_s());
    pruned += found.pruned;
  }
  EXPECT_GT(pruned, 0);
}

TEST(SearchTest, OnAWireThatIsTooSlowOneHostIsBest) {
  Rng rng(RngKey(14).With(kTestStream));
  const PlannerFacts facts = RandomFacts(&rng);
  NetworkFacts network = RandomNetwork(5, 1, &rng);
  network.links.between_hosts.seconds_per_byte = 1;
  StepSimulator simulator(facts, network);
  const SearchResult found = Search(&simulator, {.hosts = {2, 5}, .global_batches = {64}}).value();
  EXPECT_EQ(found.best[0].choice.hosts, 1);
  EXPECT_EQ(found.recommended.choice.hosts, 1);
  const Choice dense{.hosts = 5, .global_batch = 64};
  const auto slower = SlowerThanOne(simulator.Simulate(dense).value(), found.one_host);
  ASSERT_TRUE(slower.has_value());
  EXPECT_THAT(*slower, HasSubstr("times one host alone"));
  EXPECT_THAT(*slower, HasSubstr("it waits for the wire"));
}

TEST(SearchTest, RecommendsTheGentlestOfThoseThatAreAsFast) {
  std::vector<Prediction> predictions;
  const auto add = [&](int period, double images) {
    Prediction prediction{.choice = {.hosts = 4, .period = period}, .images = images};
    prediction.seconds.forward = 1;
    predictions.push_back(prediction);
  };
  add(8, 100);
  add(4, 99);
  add(2, 98.5);
  add(1, 90);
  EXPECT_EQ(Gentlest(predictions).choice.period, 2);
}

TEST(SearchTest, RanksOfSeveralHostsHaveTheFewestImages) {
  Rng rng(RngKey(17).With(kTestStream));
  StepSimulator simulator(RandomFacts(&rng), {.hosts = 8});  // infinitely fast
  SearchSpace space{.hosts = {2, 4, 8}, .global_batches = {32}};
  EXPECT_EQ(Search(&simulator, space)->best[0].choice.hosts, 8);
  space.fewest_images = 8;
  EXPECT_EQ(Search(&simulator, space)->best[0].choice.hosts, 4);
  space.fewest_images = 17;
  EXPECT_EQ(Search(&simulator, space)->best[0].choice.hosts, 1) << "one host has no others";
}

// Ranks that take steps of their own share no statistics (dist/config_check.h).
TEST(SearchTest, WithSharedStatisticsThereAreNoRounds) {
  Rng rng(RngKey(18).With(kTestStream));
  PlannerFacts facts = RandomFacts(&rng);
  const NetworkFacts network = RandomNetwork(4, 1, &rng);
  facts.clear_synchronized_channels();
  EXPECT_EQ(DefaultSpace(facts, network, 64, 8).periods, std::vector<int>({1, 2, 4, 8}));
  facts.add_synchronized_channels(16);
  EXPECT_EQ(DefaultSpace(facts, network, 64, 8).periods, std::vector<int>({1}));
}

// Steps of plans that a question about 1,024 hosts may make: those of 1,024 ranks would be millions.
TEST(SearchTest, AThousandHostsAreAnsweredByFormulas) {
  Rng rng(RngKey(15).With(kTestStream));
  const PlannerFacts facts = RandomFacts(&rng);
  const NetworkFacts network = RandomNetwork(1024, 4, &rng);
  const SearchSpace space = DefaultSpace(facts, network, 8192, 8);
  EXPECT_EQ(space.hosts.back(), 1024);
  EXPECT_LE(space.hosts.size(), 40U);
  StepSimulator simulator(facts, network);
  const SearchResult found = Search(&simulator, space).value();
  EXPECT_LE(found.simulated + found.pruned, 5000);
  EXPECT_GT(found.best[0].images_per_s(), found.one_host.images_per_s());
}

TEST(AdviceTest, SaysNothingWhereNothingIsToBeGained) {
  Rng rng(RngKey(16).With(kTestStream));
  const PlannerFacts facts = RandomFacts(&rng);
  const NetworkFacts network{.hosts = 4};  // infinitely fast
  const Choice dense{.hosts = 4, .global_batch = 64};
  StepSimulator simulator(facts, network);
  EXPECT_FALSE(SlowerThanOne(simulator.Simulate(dense).value(),
                             simulator.Simulate({.global_batch = 64}).value())
                   .has_value());
}

}  // namespace
}  // namespace ringtail
