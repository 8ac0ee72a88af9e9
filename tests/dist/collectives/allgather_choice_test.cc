// Which allgather is taken: where ring and Bruck's cross by the price of their plans.
#include "dist/collectives/allgather_choice.h"

#include <gtest/gtest.h>

#include <vector>

#include "dist/collectives/algorithms/bruck.h"
#include "dist/collectives/algorithms/ring.h"

namespace ringtail {
namespace {

constexpr LinkModel kGigabit = {.latency_s = 150e-6, .seconds_per_byte = 1 / 117e6};
constexpr LinkModel kSharedMemory = {.latency_s = 5e-6, .seconds_per_byte = 1 / 3e9};
constexpr NetworkModel kCluster = {.within_host = kSharedMemory, .between_hosts = kGigabit};
constexpr int64_t kRollCallBytes = 88;  // of each rank, at the end of each step

std::string_view Choice(const Topology& topology, int64_t bytes,
                        const NetworkModel& network = kCluster) {
  return CheaperAllgather(topology, bytes, /*element_bytes=*/1, network).name;
}

double Seconds(Plan (*plan)(int, int, int64_t), int world, int64_t count) {
  std::vector<Plan> plans;
  for (int rank = 0; rank < world; ++rank) plans.push_back(plan(rank, world, count));
  return CostOfPlans(plans, kGigabit).seconds;
}

TEST(CheaperAllgather, TakesBrucksForARollCall) {
  for (const int world : {4, 5, 8, 16, 33}) {
    EXPECT_EQ(Choice(Topology::Blocks(world, 1), kRollCallBytes * world), "bruck") << world;
    EXPECT_EQ(Choice(Topology::Blocks(world, world), kRollCallBytes * world), "bruck") << world;
  }
}

// In the ring only two of the 7 hops to the farthest of 8 ranks on 2 hosts go over the wire, and
// Bruck's sends over it in each of its 3 rounds. With more hosts it wins.
TEST(CheaperAllgather, KnowsWhichRanksShareAHost) {
  EXPECT_EQ(Choice(Topology::Blocks(8, 4), kRollCallBytes * 8), "ring");
  EXPECT_EQ(Choice(Topology::Blocks(16, 2), kRollCallBytes * 16), "bruck");
  EXPECT_EQ(Choice(Topology::Blocks(33, 4), kRollCallBytes * 33), "bruck");
}

TEST(CheaperAllgather, TakesTheRingForLongMessages) {
  for (const int world : {4, 5, 8, 16, 33}) {
    EXPECT_EQ(Choice(Topology::Blocks(world, 1), 100'000'000), "ring") << world;
    EXPECT_EQ(Choice(Topology::Blocks(world, 2), 100'000'000), "ring") << world;
  }
}

TEST(CheaperAllgather, DoesWithoutAMeasurement) {
  const Topology hosts = Topology::Blocks(8, 1), one_host = Topology::Blocks(8, 8);
  for (const Topology& topology : {hosts, one_host}) {
    EXPECT_EQ(Choice(topology, kRollCallBytes * 8, NetworkModel()), "bruck");
    EXPECT_EQ(Choice(topology, 100'000'000, NetworkModel()), "ring");
  }
}

TEST(CheaperAllgather, CountsBytesAndNotElements) {
  const Topology topology = Topology::Blocks(8, 1);
  int64_t bytes = 1;  // where the choice changes
  while (Choice(topology, bytes) == "bruck") bytes *= 2;
  EXPECT_EQ(CheaperAllgather(topology, bytes / 8, 8, kCluster).name, "ring");
  EXPECT_EQ(CheaperAllgather(topology, bytes / 2 / 8, 8, kCluster).name, "bruck");
}

// What the README says: log2 N rounded up latencies instead of N - 1.
TEST(AllgatherPrice, HasTheLatenciesOfItsRounds) {
  for (const auto& [world, rounds] : {std::pair(8, 3), {16, 4}, {33, 6}, {64, 6}}) {
    const int64_t count = kRollCallBytes / kElementBytes * world;
    const double bytes_s = (world - 1) * kRollCallBytes * kGigabit.seconds_per_byte;
    EXPECT_NEAR(Seconds(RingAllgather, world, count), (world - 1) * 150e-6 + bytes_s, 1e-9);
    EXPECT_NEAR(Seconds(BruckAllgather, world, count), rounds * 150e-6 + bytes_s, 1e-9);
  }
}

}  // namespace
}  // namespace ringtail
