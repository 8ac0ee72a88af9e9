// Prices of plans against formulas, the simulator, and what others have published.
#include "dist/collectives/plan_cost.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>

#include "dist/collectives/algorithms.h"
#include "dist/collectives/cost_table.h"
#include "tests/dist/collectives/cost_formulas.h"
#include "tests/dist/collectives/plan_simulator.h"

namespace ringtail {
namespace {

constexpr int kMaxWorld = 33;
constexpr LinkModel kGigabit = {
    .latency_s = 150e-6, .seconds_per_byte = 1 / 117e6, .reduce_seconds_per_byte = 1 / 5e9};
constexpr double kRounding = 1e-9;  // relative error of the sum over many rounds

bool IsPowerOfTwo(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }

// A number of elements that divides into `world` parts, and into 32.
int64_t EvenCount(int world) { return int64_t{world} * 32 * 3; }

std::string Describe(const AllreduceAlgorithm& algorithm, const Topology& topology) {
  return fmt::format("{}, {} ranks on {} hosts", algorithm.name, topology.world(),
                     topology.hosts());
}

std::vector<Topology> Layouts() {
  std::vector<Topology> layouts;
  for (int world = 1; world <= kMaxWorld; ++world) layouts.push_back(Topology::Blocks(world, 1));
  for (const int ranks_per_host : {2, 3, 4, 8}) {
    for (int world = 1; world <= kMaxWorld; world += 3) {
      layouts.push_back(Topology::Blocks(world, ranks_per_host));
    }
  }
  return layouts;
}

TEST(PlanCost, HasTheRoundsAndBytesOfTheFormula) {
  for (const AllreduceAlgorithm& algorithm : AllreduceAlgorithms()) {
    const AllreduceFormula& formula_of = FormulaOf(algorithm.name);
    if (!formula_of.exact_counts) continue;
    for (const Topology& topology : Layouts()) {
      const int64_t count = EvenCount(topology.world()) * topology.hosts();
      const FormulaCost formula = formula_of.Cost(topology, count * kElementBytes);
      const PlanCost plan = CostOfPlans(AllPlans(algorithm, topology, count), kGigabit);
      ASSERT_EQ(formula.rounds, plan.rounds) << Describe(algorithm, topology);
      ASSERT_NEAR(formula.sent_bytes, static_cast<double>(plan.sent_bytes), 0.1)
          << Describe(algorithm, topology);
      ASSERT_NEAR(formula.received_bytes, static_cast<double>(plan.received_bytes), 0.1)
          << Describe(algorithm, topology);
    }
  }
}

TEST(PlanCost, IsWithinAnElementPerMessageOfTheFormulaForOddCounts) {
  for (const AllreduceAlgorithm& algorithm : AllreduceAlgorithms()) {
    const AllreduceFormula& formula_of = FormulaOf(algorithm.name);
    if (!formula_of.exact_counts) continue;
    for (const Topology& topology : Layouts()) {
      const FormulaCost formula = formula_of.Cost(topology, 1009 * kElementBytes);
      const PlanCost plan = CostOfPlans(AllPlans(algorithm, topology, 1009), kGigabit);
      ASSERT_EQ(formula.rounds, plan.rounds) << Describe(algorithm, topology);
      const auto tolerance = static_cast<double>(formula.rounds * kElementBytes);
      ASSERT_NEAR(formula.sent_bytes, static_cast<double>(plan.sent_bytes), tolerance)
          << Describe(algorithm, topology);
    }
  }
}

TEST(PlanCost, HasTheTimeOfTheFormulaWhereThatIsExact) {
  for (const AllreduceAlgorithm& algorithm : AllreduceAlgorithms()) {
    const AllreduceFormula& formula_of = FormulaOf(algorithm.name);
    for (int world = 1; world <= kMaxWorld; ++world) {
      const bool exact =
          formula_of.time_is_exact == TimeIsExact::kInEveryWorld ||
          (formula_of.time_is_exact == TimeIsExact::kInPowersOfTwo && IsPowerOfTwo(world));
      if (!exact) continue;
      const Topology topology = Topology::Blocks(world, 1);
      const int64_t count = EvenCount(world);
      const double formula = formula_of.Cost(topology, count * kElementBytes).Seconds(kGigabit);
      const double plan = CostOfPlans(AllPlans(algorithm, topology, count), kGigabit).seconds;
      ASSERT_NEAR(plan, formula, formula * kRounding) << Describe(algorithm, topology);
    }
  }
}

TEST(PlanCost, TakesAtMostTheTimeOfTheFormulaElsewhere) {
  for (const AllreduceAlgorithm& algorithm : AllreduceAlgorithms()) {
    for (const Topology& topology : Layouts()) {
      for (const int64_t count :
           {EvenCount(topology.world()) * topology.hosts(), int64_t{1} << 20}) {
        const FormulaCost cost = FormulaOf(algorithm.name).Cost(topology, count * kElementBytes);
        const double formula = cost.Seconds(kGigabit);
        const double plan = CostOfPlans(AllPlans(algorithm, topology, count), kGigabit).seconds;
        const double an_element_per_message =
            static_cast<double>(cost.latencies * kElementBytes) * kGigabit.seconds_per_byte;
        ASSERT_LE(plan, formula * (1 + kRounding) + an_element_per_message)
            << Describe(algorithm, topology);
        ASSERT_GE(plan, formula / 2) << Describe(algorithm, topology);
      }
    }
  }
}

TEST(PlanCost, HasTheBandwidthTermOfTheFormulaInEveryWorld) {
  constexpr LinkModel kBandwidthOnly = {.seconds_per_byte = 1e-9};
  for (const std::string_view name : {"recursive_doubling", "halving_doubling", "binomial_tree"}) {
    const AllreduceAlgorithm& algorithm = **FindAllreduce(name);
    for (int world = 1; world <= kMaxWorld; ++world) {
      const Topology topology = Topology::Blocks(world, 1);
      const int64_t count = EvenCount(world);
      const double formula =
          FormulaOf(name).Cost(topology, count * kElementBytes).Seconds(kBandwidthOnly);
      const double plan = CostOfPlans(AllPlans(algorithm, topology, count), kBandwidthOnly).seconds;
      ASSERT_NEAR(plan, formula, formula * kRounding) << Describe(algorithm, topology);
    }
  }
}

TEST(PlanCost, OfTheDoubleBinaryTreeIsWithinItsBounds) {
  const AllreduceAlgorithm& algorithm = **FindAllreduce("double_binary_tree");
  const AllreduceFormula& formula_of = FormulaOf(algorithm.name);
  for (int world = 1; world <= kMaxWorld; ++world) {
    const Topology topology = Topology::Blocks(world, 1);
    for (const int64_t count : {int64_t{2}, int64_t{1000}, int64_t{1} << 20}) {
      const FormulaCost formula = formula_of.Cost(topology, count * kElementBytes);
      const PlanCost plan = CostOfPlans(AllPlans(algorithm, topology, count), kGigabit);
      ASSERT_LE(plan.rounds, formula.rounds) << Describe(algorithm, topology);
      ASSERT_LE(static_cast<double>(plan.sent_bytes), formula.sent_bytes);
      ASSERT_LE(static_cast<double>(plan.received_bytes), formula.received_bytes);
      if (world > 3) {
        ASSERT_EQ(static_cast<double>(plan.sent_bytes), formula.sent_bytes);
      }
    }
  }
}

TEST(PlanCost, OfTheDoubleBinaryTreeIsNearTwiceTheBytesForLongMessages) {
  constexpr LinkModel kBandwidthOnly = {.seconds_per_byte = 1e-9};
  for (const int world : {4, 8, 13, 32}) {
    const auto plans = AllPlans(**FindAllreduce("double_binary_tree"), Topology::Blocks(world, 1),
                                int64_t{25'000'000});  // 0.1 GB
    EXPECT_LT(CostOfPlans(plans, kBandwidthOnly).seconds, 1.05 * 0.2) << world;
  }
}

TEST(PlanCost, CountsAsTheSimulatorDoes) {
  for (const AllreduceAlgorithm& algorithm : AllreduceAlgorithms()) {
    for (int world = 1; world <= kMaxWorld; ++world) {
      const Topology topology = Topology::Blocks(world, 4);
      const std::vector<Plan> plans = AllPlans(algorithm, topology, 100);
      std::vector arrays(static_cast<size_t>(world), std::vector<float>(100));
      const Simulation simulation = Simulate(plans, &arrays);
      const PlanCost cost = CostOfPlans(plans, kGigabit);
      ASSERT_EQ(cost.rounds, simulation.rounds) << Describe(algorithm, topology);
      ASSERT_EQ(cost.sent_bytes, simulation.max_sent() * kElementBytes);
      ASSERT_EQ(cost.received_bytes, simulation.max_received() * kElementBytes);
    }
  }
}

TEST(PlanCost, RanksOfAHostShareItsWire) {
  // Two hosts; each rank of the first sends to its counterpart on the second: 4 messages, 1 wire.
  const Topology topology = Topology::Blocks(8, 4);
  const ElementRange thousand_bytes = {.offset = 0, .count = 250};
  std::vector<Plan> plans(8);
  for (int i = 0; i < 4; ++i) {
    plans[static_cast<size_t>(i)].AddRound({Step::Send(i + 4, thousand_bytes)});
    plans[static_cast<size_t>(i) + 4].AddRound({Step::ReceiveReduce(i, thousand_bytes)});
  }
  const NetworkModel network = {
      .within_host = {.latency_s = 1, .seconds_per_byte = 1, .reduce_seconds_per_byte = 1},
      .between_hosts = {
          .latency_s = 0.5, .seconds_per_byte = 1e-3, .reduce_seconds_per_byte = 1e-4}};
  EXPECT_NEAR(CostOfPlans(plans, topology, network).seconds, 0.5 + 4 * 1.0 + 0.1, 1e-9);
  EXPECT_NEAR(CostOfPlans(plans, network.between_hosts).seconds, 0.5 + 1.0 + 0.1, 1e-9);
}

TEST(PlanCost, SendersShareTheLinkOfTheirReceiver) {
  std::vector<Plan> plans(3);  // 1 and 2 send a thousand bytes each to 0, in the same round
  const ElementRange lower = {.offset = 0, .count = 250}, upper = {.offset = 250, .count = 250};
  plans[0].AddRound({Step::ReceiveCopy(1, lower), Step::ReceiveCopy(2, upper)});
  plans[1].AddRound({Step::Send(0, lower)});
  plans[2].AddRound({Step::Send(0, upper)});
  EXPECT_NEAR(CostOfPlans(plans, {.latency_s = 0.5, .seconds_per_byte = 1e-3}).seconds, 2.5, 1e-9);
}

TEST(PlanCost, AHierarchySparesTheWireIfRanksAlternateBetweenHosts) {
  const Topology topology = {.host_of_rank = {0, 1, 0, 1, 0, 1, 0, 1}};
  const NetworkModel network = {.within_host = {.seconds_per_byte = 1e-10},
                                .between_hosts = {.seconds_per_byte = 1e-8}};
  const auto seconds = [&](std::string_view name) {
    return CostOfPlans(AllPlans(**FindAllreduce(name), topology, 1 << 20), topology, network)
        .seconds;
  };
  EXPECT_LT(seconds("hierarchical"), 0.5 * seconds("ring"));
}

// 1.2 GB of gradients over links of 1 GB/s (Baidu 2017): through the link of a single reducer pass
// 1.2 s of data with 2 workers and 10.8 s with 10; in a ring 2 (N - 1) / N of the bytes.
TEST(CostTable, ReproducesBaidusExample) {
  constexpr int64_t kBytes = 1'200'000'000;
  const std::vector<int> worlds = {2, 10, 100};
  const std::vector<int64_t> bytes = {kBytes};
  const std::vector<CostRow> rows = CostTable(worlds, bytes, {.seconds_per_byte = 1e-9});
  const auto row = [&rows](std::string_view algorithm, int world) {
    for (const CostRow& r : rows) {
      if (r.algorithm == algorithm && r.world == world) return r;
    }
    ADD_FAILURE() << algorithm << " of " << world;
    return CostRow{};
  };
  EXPECT_NEAR(row("single_reducer", 2).busiest_link_seconds, 1.2, 1e-9);
  EXPECT_NEAR(row("single_reducer", 10).busiest_link_seconds, 10.8, 1e-9);
  for (const int world : worlds) {
    const double share = 2.0 * (world - 1) / world;
    EXPECT_NEAR(static_cast<double>(row("ring", world).cost.sent_bytes), share * kBytes, 1e-3);
    EXPECT_NEAR(row("ring", world).cost.seconds, share * 1.2, 1e-9);
    EXPECT_LT(row("ring", world).cost.seconds, 2.4);
  }
  // There and back, if the reducer waits for the whole sum before it answers:
  EXPECT_NEAR(row("single_reducer", 10).cost.seconds, 21.6, 1e-9);
}

TEST(CostTable, HasARowForEachAlgorithmWorldAndSize) {
  const std::vector<int> worlds = {4, 8};
  const std::vector<int64_t> bytes = {1024, 1 << 20, 100 << 20};
  const auto flat = CostTable(worlds, bytes, kGigabit);
  EXPECT_EQ(flat.size(), (AllreduceAlgorithms().size() - 1) * 2 * 3);
  const auto two_levels = CostTable(worlds, bytes, kGigabit, 2);
  EXPECT_EQ(two_levels.size(), AllreduceAlgorithms().size() * 2 * 3);
  EXPECT_EQ(two_levels.back().algorithm, AllreduceAlgorithms().back().name);
  EXPECT_EQ(two_levels.back().world, 8);
  EXPECT_EQ(two_levels.back().bytes, 100 << 20);
}

}  // namespace
}  // namespace ringtail
