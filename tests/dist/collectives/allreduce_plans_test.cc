// Every allreduce algorithm in every world up to 33, on awkward counts, by simulation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "dist/collectives/algorithms.h"
#include "dist/collectives/algorithms/halving_doubling.h"
#include "dist/collectives/algorithms/hierarchical.h"
#include "dist/collectives/algorithms/recursive_doubling.h"
#include "dist/collectives/algorithms/ring.h"
#include "tests/dist/collectives/plan_simulator.h"

namespace ringtail {
namespace {

constexpr int kMaxWorld = 33;

std::set<int64_t> AwkwardCounts(int world) {
  return {0, 1, 2, 7, world - 1, world, world + 1, 2 * world - 1, 1000, 1023, world * world + 1};
}

// Layouts of up to 33 ranks: on one host, even, uneven, dealt out in turn, and one host per rank.
std::vector<Topology> AwkwardLayouts() {
  std::vector<Topology> layouts;
  for (int world = 1; world <= kMaxWorld; ++world) {
    layouts.push_back(Topology::Blocks(world, 1));
    if (world > 1) layouts.push_back(Topology::Blocks(world, world));
  }
  for (const auto& [world, ranks_per_host] : {std::pair(4, 2), {6, 4}, {9, 3}, {12, 5}, {33, 8}}) {
    layouts.push_back(Topology::Blocks(world, ranks_per_host));
  }
  for (const auto& hosts : std::vector<std::vector<int>>{{0, 1, 0, 1},
                                                         {0, 1, 1, 1, 1, 1},
                                                         {0, 0, 0, 0, 1},
                                                         {0, 1, 2, 0, 1, 2, 0, 1, 0, 0},
                                                         {0, 1, 1, 0, 2, 1, 3, 3, 3, 3, 1, 2, 0}}) {
    layouts.push_back({.host_of_rank = hosts});
  }
  return layouts;
}

std::string Describe(const Topology& topology, int64_t count) {
  return fmt::format("{} elements, {} ranks on hosts {}", count, topology.world(),
                     fmt::join(topology.host_of_rank, " "));
}

// Whole numbers below 2^20: their sums are exact in double precision, whatever the order.
std::vector<std::vector<double>> WholeNumbers(int world, int64_t count, std::mt19937_64* random) {
  std::vector<std::vector<double>> arrays(static_cast<size_t>(world));
  for (auto& array : arrays) {
    array.resize(static_cast<size_t>(count));
    for (double& x : array) x = static_cast<double>((*random)() >> 44);
  }
  return arrays;
}

std::vector<std::vector<double>> SumOnEveryRank(const std::vector<std::vector<double>>& arrays) {
  std::vector<double> sum(arrays.front().size());
  for (const auto& array : arrays) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += array[i];
  }
  return std::vector(arrays.size(), sum);
}

// Magnitudes from 2^-20 to 2^20 and both signs: every other order of additions gives other bits.
std::vector<std::vector<float>> WildFloats(int world, int64_t count, std::mt19937_64* random) {
  std::uniform_real_distribution<float> fraction(-1, 1);
  std::uniform_int_distribution<int> exponent(-20, 20);
  std::vector<std::vector<float>> arrays(static_cast<size_t>(world));
  for (auto& array : arrays) {
    array.resize(static_cast<size_t>(count));
    for (float& x : array) x = std::ldexp(fraction(*random), exponent(*random));
  }
  return arrays;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

class Allreduce : public ::testing::TestWithParam<AllreduceAlgorithm> {
 protected:
  std::vector<Plan> Plans(const Topology& topology, int64_t count) const {
    return AllPlans(GetParam(), topology, count);
  }
  std::mt19937_64 random_{1};
};

TEST_P(Allreduce, AddsUpInEveryWorld) {
  for (const Topology& topology : AwkwardLayouts()) {
    for (const int64_t count : AwkwardCounts(topology.world())) {
      auto arrays = WholeNumbers(topology.world(), count, &random_);
      const auto sums = SumOnEveryRank(arrays);
      const Simulation simulation = Simulate(Plans(topology, count), &arrays);
      ASSERT_EQ(simulation.error, "") << Describe(topology, count);
      ASSERT_TRUE(arrays == sums) << Describe(topology, count);
    }
  }
}

TEST_P(Allreduce, AddsUpSeveralSegments) {  // of the tree; 300,000 is more than four of them
  for (const int world : {2, 3, 4, 7}) {
    const Topology topology = Topology::Blocks(world, 2);
    auto arrays = WholeNumbers(world, 300'000, &random_);
    const auto sums = SumOnEveryRank(arrays);
    ASSERT_EQ(Simulate(Plans(topology, 300'000), &arrays).error, "") << world;
    ASSERT_TRUE(arrays == sums) << world;
  }
}

TEST_P(Allreduce, GivesAllRanksTheSameBits) {
  for (const Topology& topology : AwkwardLayouts()) {
    auto arrays = WildFloats(topology.world(), 101, &random_);
    ASSERT_EQ(Simulate(Plans(topology, 101), &arrays).error, "");
    for (const auto& array : arrays) {
      ASSERT_TRUE(SameBits(array, arrays[0])) << Describe(topology, 101);
    }
  }
}

TEST_P(Allreduce, GivesTheSameBitsWhateverTheTiming) {
  for (int world = 1; world <= kMaxWorld; world += world < 18 ? 1 : 5) {
    const Topology topology = Topology::Blocks(world, 3);
    const std::vector<Plan> plans = Plans(topology, 50);
    const auto before = WildFloats(world, 50, &random_);
    auto lockstep = before;
    ASSERT_EQ(Simulate(plans, &lockstep).error, "");
    for (uint64_t seed = 0; seed < 20; ++seed) {
      auto arrays = before;
      ASSERT_EQ(Simulate(plans, &arrays, {.timing = Timing::kEager, .seed = seed}).error, "");
      for (size_t rank = 0; rank < arrays.size(); ++rank) {
        ASSERT_TRUE(SameBits(arrays[rank], lockstep[rank])) << world << " ranks, seed " << seed;
      }
    }
  }
}

TEST_P(Allreduce, HasFewStepsEvenForLongArrays) {
  // A few per peer, and in the tree a few per segment.
  const Topology topology = Topology::Blocks(kMaxWorld, 8);
  for (const int64_t count : {int64_t{1000}, int64_t{100} << 20}) {
    const Plan plan = GetParam().plan(0, topology, count);
    size_t steps = 0;
    for (const Round& round : plan.rounds) steps += round.steps.size();
    EXPECT_LE(steps, 4 * kMaxWorld + 10 * static_cast<size_t>(count / 65536 + 2)) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryAlgorithm, Allreduce, ::testing::ValuesIn(AllreduceAlgorithms()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(HierarchicalAllreduce, WorksWithAnyAlgorithmBetweenTheLeaders) {
  std::mt19937_64 random(2);
  for (const FlatAllreduce leaders :
       {RingAllreduce, RecursiveDoublingAllreduce, HalvingDoublingAllreduce}) {
    for (const Topology& topology : AwkwardLayouts()) {
      std::vector<Plan> plans;
      plans.reserve(topology.host_of_rank.size());
      for (int rank = 0; rank < topology.world(); ++rank) {
        plans.push_back(HierarchicalAllreduce(rank, topology, 10, leaders));
      }
      auto arrays = WholeNumbers(topology.world(), 10, &random);
      const auto sums = SumOnEveryRank(arrays);
      ASSERT_EQ(Simulate(plans, &arrays).error, "") << Describe(topology, 10);
      ASSERT_TRUE(arrays == sums) << Describe(topology, 10);
    }
  }
}

TEST(HierarchicalAllreduce, OnlyLeadersUseTheWire) {
  const Topology topology = {.host_of_rank = {0, 1, 0, 2, 1, 0}};  // leaders: 0, 1, 3
  for (int rank = 0; rank < topology.world(); ++rank) {
    for (const Round& round : HierarchicalAllreduce(rank, topology, 9, RingAllreduce).rounds) {
      for (const Step& step : round.steps) {
        const bool same_host = topology.host_of_rank[static_cast<size_t>(rank)] ==
                               topology.host_of_rank[static_cast<size_t>(step.peer)];
        const auto leads = [](int r) { return r == 0 || r == 1 || r == 3; };
        EXPECT_TRUE(same_host || (leads(rank) && leads(step.peer))) << rank << " " << step.peer;
      }
    }
  }
}

}  // namespace
}  // namespace ringtail
