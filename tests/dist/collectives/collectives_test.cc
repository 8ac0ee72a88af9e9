// Reduce-scatter, allgather, broadcast, reduce and barrier in every world up to 33, by simulation.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <vector>

#include "dist/collectives/algorithms/all_to_all.h"
#include "dist/collectives/algorithms/binomial_tree.h"
#include "dist/collectives/algorithms/bruck.h"
#include "dist/collectives/algorithms/ring.h"
#include "dist/collectives/barrier.h"
#include "tests/dist/collectives/plan_simulator.h"

namespace ringtail {
namespace {

constexpr int kMaxWorld = 33;

std::set<int64_t> AwkwardCounts(int world) { return {0, 1, 2, world - 1, world, world + 1, 1000}; }

double Value(int rank, int64_t i) { return 1000.0 * rank + static_cast<double>(i); }

std::vector<std::vector<double>> DifferentArrays(int world, int64_t count) {
  std::vector<std::vector<double>> arrays(static_cast<size_t>(world));
  for (int rank = 0; rank < world; ++rank) {
    for (int64_t i = 0; i < count; ++i) arrays[static_cast<size_t>(rank)].push_back(Value(rank, i));
  }
  return arrays;
}

double Sum(int world, int64_t i) {
  return 1000.0 * world * (world - 1) / 2 + 1.0 * world * static_cast<double>(i);
}

template <typename PlanOfRank>
std::vector<Plan> Plans(int world, PlanOfRank plan_of_rank) {
  std::vector<Plan> plans;
  plans.reserve(static_cast<size_t>(world));
  for (int rank = 0; rank < world; ++rank) plans.push_back(plan_of_rank(rank));
  return plans;
}

TEST(RingReduceScatter, GivesEachRankTheSumOfItsPart) {
  for (int world = 1; world <= kMaxWorld; ++world) {
    for (const int64_t count : AwkwardCounts(world)) {
      auto arrays = DifferentArrays(world, count);
      const auto plans =
          Plans(world, [&](int rank) { return RingReduceScatter(rank, world, count); });
      ASSERT_EQ(Simulate(plans, &arrays).error, "");
      for (int rank = 0; rank < world; ++rank) {
        const ElementRange part = EvenPart(count, world, rank);
        for (int64_t i = part.offset; i < part.end(); ++i) {
          ASSERT_EQ(arrays[static_cast<size_t>(rank)][static_cast<size_t>(i)], Sum(world, i))
              << world << " ranks, " << count << " elements, element " << i;
        }
      }
    }
  }
}

TEST(AllToAll, GivesEveryRankItsBlockOfEach) {
  for (int world = 1; world <= kMaxWorld; ++world) {
    for (const int64_t block : {0, 1, 7, 100}) {
      auto arrays = DifferentArrays(world, 2 * world * block);
      const auto plans = Plans(world, [&](int rank) { return AllToAll(rank, world, block); });
      const Simulation simulation = Simulate(plans, &arrays);
      ASSERT_EQ(simulation.error, "");
      EXPECT_EQ(simulation.max_sent(), (world - 1) * block);
      EXPECT_EQ(simulation.rounds, block == 0 || world == 1 ? 0 : 1);
      for (int rank = 0; rank < world; ++rank) {
        for (int from = 0; from < world; ++from) {
          if (from == rank) continue;
          for (int64_t i = 0; i < block; ++i) {
            ASSERT_EQ(
                arrays[static_cast<size_t>(rank)][static_cast<size_t>((world + from) * block + i)],
                Value(from, rank * block + i))
                << world << " ranks, from " << from << " to " << rank;
          }
        }
      }
    }
  }
}

TEST(RingAllgather, GivesEveryRankThePartOfEach) {
  for (int world = 1; world <= kMaxWorld; ++world) {
    for (const int64_t count : AwkwardCounts(world)) {
      auto arrays = DifferentArrays(world, count);
      const auto plans = Plans(world, [&](int rank) { return RingAllgather(rank, world, count); });
      ASSERT_EQ(Simulate(plans, &arrays).error, "");
      for (int owner = 0; owner < world; ++owner) {
        const ElementRange part = EvenPart(count, world, owner);
        for (int64_t i = part.offset; i < part.end(); ++i) {
          for (const auto& array : arrays) {
            ASSERT_EQ(array[static_cast<size_t>(i)], Value(owner, i)) << world << " ranks";
          }
        }
      }
    }
  }
}

// Rounds: until 1 has become at least `world` by doubling.
int Log2(int world) { return std::bit_width(static_cast<unsigned>(world) - 1); }

// Parts of `ends` on every rank, whatever the timing.
void ExpectGathered(const std::vector<int64_t>& ends, SimulationOptions options) {
  const int world = static_cast<int>(ends.size());
  auto arrays = DifferentArrays(world, ends.back());
  const auto plans = Plans(world, [&](int rank) { return BruckAllgather(rank, ends); });
  const Simulation simulation = Simulate(plans, &arrays, options);
  ASSERT_EQ(simulation.error, "") << world << " ranks";
  ASSERT_LE(simulation.rounds, Log2(world));
  for (int64_t i = 0, owner = 0; i < ends.back(); ++i) {
    while (i >= ends[static_cast<size_t>(owner)]) ++owner;
    for (const auto& array : arrays) {
      ASSERT_EQ(array[static_cast<size_t>(i)], Value(static_cast<int>(owner), i))
          << world << " ranks, element " << i;
    }
  }
}

TEST(BruckAllgather, GivesEveryRankThePartOfEach) {
  for (int world = 1; world <= kMaxWorld; ++world) {
    for (const int64_t count : AwkwardCounts(world)) {
      std::vector<int64_t> ends;
      ends.reserve(static_cast<size_t>(world));
      for (int part = 0; part < world; ++part) ends.push_back(EvenPart(count, world, part).end());
      ExpectGathered(ends, {});
      for (const uint64_t seed : {1, 2}) {
        ExpectGathered(ends, {.timing = Timing::kEager, .seed = seed});
      }
      EXPECT_EQ(BruckAllgather(world / 2, world, count), BruckAllgather(world / 2, ends));
    }
  }
}

TEST(BruckAllgather, TakesPartsOfAnySizeAndOfNone) {
  for (int world = 1; world <= kMaxWorld; ++world) {
    for (const int only : {0, world / 2, world - 1}) {  // one rank alone has something
      std::vector<int64_t> ends(static_cast<size_t>(world), 0);
      std::fill(ends.begin() + only, ends.end(), 5);
      ExpectGathered(ends, {});
    }
    std::vector<int64_t> ends;
    ends.reserve(static_cast<size_t>(world));
    for (int part = 0; part < world; ++part) {
      ends.push_back((part == 0 ? 0 : ends.back()) + part * 7 % 4);
    }
    ExpectGathered(ends, {.timing = Timing::kEager, .seed = 3});
  }
}

TEST(BruckAllgather, TakesTheLogarithmOfTheWorldAndTheBytesOfTheRing) {
  for (int world = 2; world <= kMaxWorld; ++world) {
    const int64_t count = 10 * world;
    auto arrays = DifferentArrays(world, count);
    const auto plans = Plans(world, [&](int rank) { return BruckAllgather(rank, world, count); });
    const Simulation simulation = Simulate(plans, &arrays);
    EXPECT_EQ(simulation.rounds, Log2(world)) << world;
    for (const auto* elements : {&simulation.sent, &simulation.received}) {
      for (const int64_t n : *elements) EXPECT_EQ(n, 10 * (world - 1)) << world;
    }
  }
}

TEST(BinomialBroadcast, GivesEveryRankWhatAnyRootHolds) {
  for (int world = 1; world <= kMaxWorld; ++world) {
    for (int root = 0; root < world; ++root) {
      for (const int64_t count : {0, 1, 5}) {
        auto arrays = DifferentArrays(world, count);
        const std::vector expected(static_cast<size_t>(world), arrays[static_cast<size_t>(root)]);
        const auto plans =
            Plans(world, [&](int rank) { return BinomialBroadcast(rank, world, count, root); });
        ASSERT_EQ(Simulate(plans, &arrays).error, "") << world << " ranks, root " << root;
        ASSERT_EQ(arrays, expected) << world << " ranks, root " << root;
      }
    }
  }
}

TEST(BinomialReduce, AddsUpAtAnyRoot) {
  for (int world = 1; world <= kMaxWorld; ++world) {
    for (int root = 0; root < world; ++root) {
      auto arrays = DifferentArrays(world, 3);
      const auto plans =
          Plans(world, [&](int rank) { return BinomialReduce(rank, world, 3, root); });
      ASSERT_EQ(Simulate(plans, &arrays).error, "");
      for (int64_t i = 0; i < 3; ++i) {
        ASSERT_EQ(arrays[static_cast<size_t>(root)][static_cast<size_t>(i)], Sum(world, i));
      }
    }
  }
}

TEST(DisseminationBarrier, LetsNoRankLeaveBeforeAllHaveEntered) {
  for (int world = 1; world <= kMaxWorld; ++world) {
    std::vector<std::vector<float>> tokens(static_cast<size_t>(world), {0.0F});
    const auto plans = Plans(world, [&](int rank) { return DisseminationBarrier(rank, world); });
    const Simulation simulation = Simulate(plans, &tokens);
    ASSERT_EQ(simulation.error, "");
    for (const uint64_t heard_of : simulation.heard_of) {
      ASSERT_EQ(heard_of, (uint64_t{1} << world) - 1) << world << " ranks";
    }
  }
}

TEST(DisseminationBarrier, TakesTheLogarithmOfTheWorld) {
  EXPECT_EQ(DisseminationBarrier(0, 1).rounds.size(), 0U);
  EXPECT_EQ(DisseminationBarrier(4, 8).rounds.size(), 3U);
  EXPECT_EQ(DisseminationBarrier(4, 9).rounds.size(), 4U);
}

}  // namespace
}  // namespace ringtail
