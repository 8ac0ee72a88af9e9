#include "dist/planner/collective_prices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/random.h"
#include "dist/collectives/algorithms/all_to_all.h"
#include "dist/collectives/allgather_choice.h"
#include "dist/collectives/plan_cost.h"

namespace ringtail {
namespace {

constexpr LinkModel kEthernet{
    .latency_s = 150e-6, .seconds_per_byte = 1 / 117e6, .reduce_seconds_per_byte = 1e-10};
constexpr LinkModel kMemory{
    .latency_s = 10e-6, .seconds_per_byte = 1 / 4e9, .reduce_seconds_per_byte = 1e-10};
constexpr NetworkModel kNetwork{.within_host = kMemory, .between_hosts = kEthernet};

bool IsPowerOfTwo(int n) { return (n & (n - 1)) == 0; }

PlanCost PlansOf(const AllreduceAlgorithm& algorithm, const RegularWorld& world, int64_t elements) {
  const Topology topology = world.topology();
  return CostOfPlans(AllPlans(algorithm, topology, elements), topology, kNetwork);
}

double ByPlans(const AllreduceAlgorithm& algorithm, const RegularWorld& world, int64_t elements) {
  return PlansOf(algorithm, world, elements).seconds;
}

// Equal where closed_forms.h says so; elsewhere never cheaper, so that a choice by formulas is not
// one for a price that no plan can have.
TEST(ClosedFormsTest, AllreducesCostWhatTheirPlansCost) {
  for (const AllreduceAlgorithm& algorithm : AllreduceAlgorithms()) {
    for (int hosts = 2; hosts <= 33; ++hosts) {
      for (const int64_t elements : {1, 7, 64, 1000, 65536, 300'001}) {
        const RegularWorld world{.hosts = hosts};
        const CollectivePrice price = AllreduceByFormula(algorithm, world, elements, kNetwork);
        const PlanCost cost = PlansOf(algorithm, world, elements);
        const double formula = price.seconds, plans = cost.seconds;
        const std::string where = std::string(algorithm.name) + " of " + std::to_string(hosts) +
                                  " hosts, " + std::to_string(elements);
        const bool exact =
            algorithm.name == "ring" ||
            (IsPowerOfTwo(hosts) && algorithm.name != "double_binary_tree" &&
             algorithm.name != "halving_doubling" && algorithm.name != "hierarchical");
        if (exact) {
          EXPECT_NEAR(formula, plans, 1e-9 * plans) << where;
        } else if (IsPowerOfTwo(hosts) && algorithm.name == "halving_doubling") {
          // Which rank has the larger half differs from round to round.
          EXPECT_NEAR(formula, plans, 1e-6 + 1e-3 * plans) << where;
        }
        EXPECT_GE(formula, plans * (1 - 1e-9)) << where;
        EXPECT_GE(price.sent_messages, cost.sent_messages) << where;
        if (exact && elements >= hosts) {
          EXPECT_EQ(price.sent_messages, cost.sent_messages) << where;
        }
      }
    }
  }
}

TEST(ClosedFormsTest, RanksOfAHostShareItsWire) {
  const auto ring = FindAllreduce("ring"), hierarchical = FindAllreduce("hierarchical");
  for (const int hosts : {2, 4, 7}) {
    for (const int ranks : {2, 4}) {
      const RegularWorld world{.hosts = hosts, .ranks_per_host = ranks};
      for (const int64_t elements : {1000, 300'000}) {
        const double by_ring = ByPlans(**ring, world, elements);
        const double ring_formula = AllreduceByFormula(**ring, world, elements, kNetwork).seconds;
        EXPECT_GE(ring_formula, by_ring);
        EXPECT_LE(ring_formula, 1.15 * by_ring);
        const double by_hierarchy = ByPlans(**hierarchical, world, elements);
        EXPECT_NEAR(AllreduceByFormula(**hierarchical, world, elements, kNetwork).seconds,
                    by_hierarchy, 0.01 * by_hierarchy);
      }
    }
  }
}

TEST(ClosedFormsTest, AllgatherAndAllToAllCostWhatTheirPlansCost) {
  for (int hosts = 2; hosts <= 20; ++hosts) {
    const RegularWorld world{.hosts = hosts};
    const Topology topology = world.topology();
    for (const int64_t part : {1, 25, 10'000}) {
      const int64_t elements = part * hosts;
      double cheapest = 1e9;
      int64_t messages = 0;  // of the cheapest
      for (const AllgatherAlgorithm& algorithm : AllgatherAlgorithms()) {
        std::vector<Plan> plans;
        plans.reserve(hosts);
        for (int rank = 0; rank < hosts; ++rank) {
          plans.push_back(algorithm.plan(rank, hosts, elements));
        }
        const PlanCost cost = CostOfPlans(plans, topology, kNetwork);
        if (cost.seconds < cheapest) messages = cost.sent_messages;
        cheapest = std::min(cheapest, cost.seconds);
      }
      const int64_t by_formula = AllgatherByFormula(world, elements, kNetwork).sent_messages;
      EXPECT_GE(by_formula, messages) << hosts << " hosts, " << elements;
      if (IsPowerOfTwo(hosts)) {
        EXPECT_EQ(by_formula, messages) << hosts << " hosts, " << elements;
      }
      EXPECT_NEAR(AllgatherByFormula(world, elements, kNetwork).seconds, cheapest, 1e-9 * cheapest);
      std::vector<Plan> plans;
      plans.reserve(hosts);
      for (int rank = 0; rank < hosts; ++rank) plans.push_back(AllToAll(rank, hosts, part));
      const double all_to_all = CostOfPlans(plans, topology, kNetwork).seconds;
      EXPECT_EQ(AllToAllByFormula(world, part, kNetwork).sent_messages, hosts - 1);
      EXPECT_NEAR(AllToAllByFormula(world, part, kNetwork).seconds, all_to_all, 1e-9 * all_to_all);
    }
  }
}

TEST(CollectivePricesTest, ArePricesOfThePlansThatTheSelectorChooses) {
  for (const RegularWorld world : {RegularWorld{.hosts = 5}, RegularWorld{.hosts = 8},
                                   RegularWorld{.hosts = 2, .ranks_per_host = 4}}) {
    CollectivePrices prices = CollectivePrices::Create("auto", world, kNetwork).value();
    AlgorithmSelector selector =
        AlgorithmSelector::Create("auto", world.topology(), kNetwork).value();
    for (const int64_t elements : {1, 5000, 1'000'000}) {
      const AllreduceAlgorithm& chosen = *selector.Select(elements * kElementBytes).algorithm;
      const PlanCost cost =
          CostOfPlans(AllPlans(chosen, world.topology(), elements), world.topology(), kNetwork);
      EXPECT_EQ(prices.Allreduce(elements).seconds, cost.seconds);
      EXPECT_EQ(prices.Allreduce(elements).sent_bytes, cost.sent_bytes);
      EXPECT_EQ(prices.Allreduce(elements).sent_messages, cost.sent_messages);
    }
  }
}

TEST(CollectivePricesTest, ANamedAlgorithmIsTaken) {
  const RegularWorld world{.hosts = 4};
  CollectivePrices prices = CollectivePrices::Create("binomial_tree", world, kNetwork).value();
  EXPECT_EQ(prices.Allreduce(1000).seconds, ByPlans(**FindAllreduce("binomial_tree"), world, 1000));
  EXPECT_THAT(CollectivePrices::Create("rign", world, kNetwork).status().message(),
              testing::HasSubstr("did you mean 'ring'?"));
}

// Each of the messages that wait for one another waits for a rank that computes.
TEST(CollectivePricesTest, MessagesToBusyRanksTakeLonger) {
  constexpr double kDelay = 1e-3;
  for (const int hosts : {8, 32}) {  // by plans, by formulas
    CollectivePrices prices =
        CollectivePrices::Create("ring", {.hosts = hosts}, kNetwork, kDelay).value();
    for (const int64_t elements : {1000, 1'000'000}) {
      const CollectivePrice& ring = prices.Allreduce(elements);
      EXPECT_NEAR(ring.busy_seconds, ring.seconds + 2 * (hosts - 1) * kDelay, 1e-9);
      EXPECT_GT(prices.Allgather(elements).busy_seconds, prices.Allgather(elements).seconds);
      EXPECT_GT(prices.AllToAll(elements).busy_seconds, prices.AllToAll(elements).seconds);
    }
  }
  CollectivePrices without = CollectivePrices::Create("ring", {.hosts = 8}, kNetwork).value();
  EXPECT_EQ(without.Allreduce(1000).busy_seconds, without.Allreduce(1000).seconds);
}

TEST(CollectivePricesTest, OneRankPaysNothing) {
  CollectivePrices prices = CollectivePrices::Create("auto", {}, kNetwork).value();
  EXPECT_EQ(prices.Allreduce(1'000'000).seconds, 0);
  EXPECT_EQ(prices.Allgather(100).sent_bytes, 0);
  EXPECT_EQ(prices.AllToAll(100).seconds, 0);
}

}  // namespace
}  // namespace ringtail
