// Every allreduce algorithm, run by the executor over threads and over sockets: the bits that its
// plans give when nothing runs at the same time.
#include <gtest/gtest.h>

#include <cstring>

#include "core/random.h"
#include "dist/collectives/algorithms.h"
#include "dist/collectives/executor.h"
#include "tests/dist/collectives/plan_simulator.h"
#include "tests/dist/test_world.h"

namespace ringtail {
namespace {

using Arrays = std::vector<std::vector<float>>;  // by rank

// Sums of these depend on the order in which they are added.
Arrays RandomArrays(int world, int64_t count) {
  Arrays arrays(world, std::vector<float>(count));
  Rng random(RngKey(11));
  for (auto& array : arrays) {
    for (float& element : array) element = static_cast<float>(random.Normal());
  }
  return arrays;
}

void ExpectAsPlanned(const World& world, const AllreduceAlgorithm& algorithm,
                     const Topology& topology, int64_t count, uint64_t sequence) {
  Arrays arrays = RandomArrays(topology.world(), count), expected = arrays;
  ASSERT_EQ(Simulate(AllPlans(algorithm, topology, count), &expected).error, "");
  std::vector<Status> statuses(topology.world());
  OnEveryRank(topology.world(), [&](int rank) {
    constexpr int64_t kSegmentBytes = 256;  // several in each step
    const Schedule schedule(
        algorithm.plan(rank, topology, count), rank,
        {.name = std::string(algorithm.name), .count = count, .segment_bytes = kSegmentBytes});
    Executor executor(world[rank].get(), {.staging_bytes = 4 * kSegmentBytes});
    statuses[rank] = executor.Run(schedule, sequence, std::span(arrays[rank]));
  });
  for (int rank = 0; rank < topology.world(); ++rank) {
    ASSERT_TRUE(statuses[rank].ok()) << statuses[rank].ToString();
    const size_t bytes = count * sizeof(float);
    EXPECT_TRUE(bytes == 0 || std::memcmp(arrays[rank].data(), expected[rank].data(), bytes) == 0)
        << algorithm.name << " of " << count << ", rank " << rank << " of " << topology.world();
    EXPECT_EQ(arrays[rank], arrays[0]) << algorithm.name << ", rank " << rank;
  }
}

class AllreduceTest : public testing::TestWithParam<WorldKind> {};

TEST_P(AllreduceTest, EveryAlgorithmGivesTheBitsOfItsPlans) {
  for (const int size : {1, 2, 3, 4, 6, 7}) {
    const World world = GetParam().make(size);
    uint64_t sequence = 0;
    for (const AllreduceAlgorithm& algorithm : AllreduceAlgorithms()) {
      for (const int64_t count : {0, 1, 5, 1000}) {
        const Topology topology = Topology::Blocks(size, /*ranks_per_host=*/2);
        ExpectAsPlanned(world, algorithm, topology, count, ++sequence);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, AllreduceTest, testing::ValuesIn(AllWorldKinds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ringtail
