#include "apps/emulator/clock/virtual_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>

#include "dist/collectives/algorithms.h"
#include "dist/collectives/plan_cost.h"

namespace ringtail {
namespace {

constexpr NetworkModel kNetwork{
    .within_host = {.latency_s = 2e-6,
                    .seconds_per_byte = 0.125e-9,
                    .reduce_seconds_per_byte = 0.25e-9},
    .between_hosts = {
        .latency_s = 50e-6, .seconds_per_byte = 8e-9, .reduce_seconds_per_byte = 0.25e-9}};
// A message of 1000 bytes between hosts: 8 us at the port, 50 us on the way.
constexpr int64_t kPort = 8'000, kWay = 50'000;

struct World {
  explicit World(int per_host = 1) : network(kNetwork, per_host, &queue) {}
  void RunAll() {
    while (!queue.empty()) ASSERT_TRUE(queue.RunNext().ok());
  }
  // A message that stores its arrival.
  void Send(int from, int to, int64_t bytes, int64_t* arrived) {
    network.Send(from, to, bytes, [this, arrived] {
      *arrived = queue.now_ns();
      return OkStatus();
    });
  }
  EventQueue queue;
  VirtualNetwork network;
};

TEST(VirtualNetworkTest, AMessageTakesLatencyAndItsBytes) {
  World world;
  int64_t arrived = 0, own = -1;
  world.Send(0, 1, 1000, &arrived);
  world.Send(2, 2, 1000, &own);
  world.RunAll();
  EXPECT_EQ(arrived, kWay + kPort);
  EXPECT_EQ(own, 0);
  EXPECT_EQ(world.network.sent_bytes(), 1000);
}

TEST(VirtualNetworkTest, APortCarriesOneMessageAtATimeInEachDirection) {
  World world;
  int64_t first = 0, second = 0, back = 0, elsewhere = 0, late = 0;
  world.Send(0, 1, 1000, &first);
  world.Send(0, 2, 1000, &second);     // the sender's port is taken
  world.Send(1, 0, 1000, &back);       // the other direction is free
  world.Send(3, 4, 1000, &elsewhere);  // so are other ports
  world.Send(5, 1, 1000, &late);       // the receiver's port is taken
  world.RunAll();
  EXPECT_EQ(first, kWay + kPort);
  EXPECT_EQ(second, kPort + kWay + kPort);
  EXPECT_EQ(back, kWay + kPort);
  EXPECT_EQ(elsewhere, kWay + kPort);
  EXPECT_EQ(late, kWay + 2 * kPort);
}

TEST(VirtualNetworkTest, WorkersOfAHostShareItsPort) {
  World world(2);
  int64_t first = 0, second = 0, within = 0;
  world.Send(0, 2, 1000, &first);
  world.Send(1, 3, 1000, &second);
  world.Send(0, 1, 8000, &within);
  world.RunAll();
  EXPECT_EQ(first, kWay + kPort);
  EXPECT_EQ(second, kWay + 2 * kPort);
  EXPECT_EQ(within, 2'000 + 1'000);
}

TEST(VirtualNetworkTest, TopologyNumbersHostsByTheirFirstWorkers) {
  const World world(2);
  EXPECT_EQ(world.network.TopologyOf({0, 1, 2, 3, 4}).host_of_rank,
            (std::vector<int>{0, 0, 1, 1, 2}));
  EXPECT_EQ(world.network.TopologyOf({5, 1, 4}).host_of_rank, (std::vector<int>{0, 1, 0}));
}

std::vector<int> Workers(int world) {
  std::vector<int> workers(static_cast<size_t>(world));
  std::iota(workers.begin(), workers.end(), 0);
  return workers;
}

// When the last of all members has finished, all having entered at `enter_ns`.
int64_t EndOfPlans(World* world, const Plans& plans, int64_t enter_ns) {
  int64_t end = 0;
  size_t finished = 0;
  const auto run = world->network.Run(std::make_shared<const Plans>(plans),
                                      Workers(static_cast<int>(plans.size())), [&](int /*member*/) {
                                        end = world->queue.now_ns();
                                        ++finished;
                                        return OkStatus();
                                      });
  for (size_t member = 0; member < plans.size(); ++member) {
    world->queue.Schedule(enter_ns, static_cast<int>(member), [run, member] {
      run->Enter(static_cast<int>(member));
      return OkStatus();
    });
  }
  world->RunAll();
  EXPECT_EQ(finished, plans.size());
  return end;
}

// The clock of every allreduce is that of dist's price list. Where workers share a host's port, messages
// of the same instant may pass it in another order.
TEST(VirtualNetworkTest, PlansTakeWhatTheyCost) {
  for (const AllreduceAlgorithm& algorithm : AllreduceAlgorithms()) {
    for (const int size : {1, 2, 3, 5, 8, 12}) {
      for (const int per_host : {1, 2, 4}) {
        for (const int64_t count : {int64_t{1}, int64_t{10'000}, int64_t{1'000'003}}) {
          const Topology topology = Topology::Blocks(size, per_host);
          if (!algorithm.Suits(topology)) continue;
          const Plans plans = AllPlans(algorithm, topology, count);
          World world(per_host);
          const double seconds = Seconds(EndOfPlans(&world, plans, 0));
          const double cost = CostOfPlans(plans, topology, kNetwork).seconds;
          EXPECT_NEAR(seconds, cost, 1e-6 + (per_host == 1 ? 1e-4 : 1e-2) * cost)
              << algorithm.name << " world " << size << " per host " << per_host << " count "
              << count;
        }
      }
    }
  }
}

TEST(VirtualNetworkTest, PlansThatBeginLaterEndLater) {
  const Plans plans = AllPlans(*FindAllreduce("ring").value(), Topology::Blocks(4, 1), 100'000);
  World now, later;
  EXPECT_EQ(EndOfPlans(&later, plans, 777), 777 + EndOfPlans(&now, plans, 0));
}

// No worker has the sum before the last has entered.
TEST(VirtualNetworkTest, AnAllreduceWaitsForItsLastMember) {
  const Plans plans = AllPlans(*FindAllreduce("ring").value(), Topology::Blocks(4, 1), 100'000);
  World world;
  int64_t first_end = -1;
  const auto run = world.network.Run(std::make_shared<const Plans>(plans), Workers(4), [&](int) {
    if (first_end < 0) first_end = world.queue.now_ns();
    return OkStatus();
  });
  for (const int member : {0, 1, 3}) run->Enter(member);
  constexpr int64_t kLate = 1'000'000'000;
  world.queue.Schedule(kLate, 2, [run] {
    run->Enter(2);
    return OkStatus();
  });
  world.RunAll();
  EXPECT_GT(first_end, kLate);
}

// The end of two rounds of recursive doubling, each of `round_ns` without delays, of workers that compute
// until then.
int64_t EndOfDelayedRounds(int64_t round_ns, int64_t computes_until_ns, WakeDelays delays) {
  const auto wakes_at = [&](size_t worker, int64_t time_ns) {
    if (computes_until_ns <= time_ns) return time_ns;
    return std::min(After(time_ns, delays.Next(static_cast<int>(worker))), computes_until_ns);
  };
  std::array<int64_t, 4> first{};
  for (size_t worker = 0; worker < 4; ++worker) first[worker] = wakes_at(worker, round_ns);
  int64_t end = 0;
  for (size_t worker = 0; worker < 4; ++worker) {
    const int64_t begin_ns = std::max(first[worker], first[worker ^ 2]);
    end = std::max(end, wakes_at(worker, begin_ns + round_ns));
  }
  return end;
}

// A thread that waits for a message beside computing wakes late in each round, by draws of its own, and all
// that wait for it are late; but not after computing.
TEST(VirtualNetworkTest, WhoComputesWakesLate) {
  constexpr int64_t kLate = 1'000'000;
  const WakeDelays delays(/*seed=*/3, /*mean_seconds=*/1e-3);
  const Plans plans =
      AllPlans(*FindAllreduce("recursive_doubling").value(), Topology::Blocks(4, 1), 1000);
  World alone;
  const int64_t end = EndOfPlans(&alone, plans, 0);
  const auto end_beside = [&](int64_t computes_until_ns) {
    World world;
    world.network.set_wake_delays(delays);
    for (int worker = 0; worker < 4; ++worker)
      world.network.cores()->Computes(worker, computes_until_ns);
    return EndOfPlans(&world, plans, 0);
  };
  EXPECT_EQ(end_beside(0), end);
  // Computing ends long after both rounds, or in the first, so that the second is undisturbed.
  for (const int64_t until_ns : {1000 * kLate, kLate / 2}) {
    EXPECT_NEAR(end_beside(until_ns), EndOfDelayedRounds(end / 2, until_ns, delays), 2);
  }
}

TEST(WakeDelaysTest, AreExponentialAndTheirWorkersOwn) {
  constexpr int kDraws = 20'000;
  WakeDelays delays(/*seed=*/3, /*mean_seconds=*/2), others(3, 2);
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double delay = delays.Next(1);
    others.Next(0);
    ASSERT_EQ(others.Next(1), delay);
    ASSERT_GE(delay, 0);
    sum += delay;
    squares += delay * delay;
  }
  const double mean = sum / kDraws;
  EXPECT_NEAR(mean, 2, 0.05);
  EXPECT_NEAR(squares / kDraws - mean * mean, 4, 0.25);
  EXPECT_EQ(WakeDelays().Next(5), 0);
}

// Of a worker that computes, what it sends takes processor time by bytes and messages, and what it adds up by bytes.
TEST(VirtualNetworkTest, SendingAndAddingTakeProcessorTimeFromComputing) {
  constexpr int64_t kFloats = 100'000;
  NetworkModel model = kNetwork;
  model.cpu_seconds_per_byte = 1e-9;
  model.cpu_seconds_per_message = 1e-4;
  EventQueue queue;
  VirtualNetwork network(model, 1, &queue);
  network.cores()->Computes(0, int64_t{1} << 40);
  // Each sends a half, which the other adds to its own, and then the sum of its half.
  const Plans plans = AllPlans(*FindAllreduce("ring").value(), Topology::Blocks(2, 1), kFloats);
  const auto run =
      network.Run(std::make_shared<const Plans>(plans), Workers(2), [](int) { return OkStatus(); });
  run->Enter(0);
  run->Enter(1);
  while (!queue.empty()) ASSERT_TRUE(queue.RunNext().ok());
  constexpr int64_t kHalf = kFloats / 2 * 4, kSent = 2 * (kHalf + 100'000), kAdded = kHalf / 4;
  EXPECT_NEAR(network.cores()->TakeMissingNs(0), kSent + kAdded, 5);
  EXPECT_EQ(network.cores()->TakeMissingNs(0), 0);
  EXPECT_EQ(network.cores()->TakeMissingNs(1), 0);  // does not compute
}

TEST(VirtualNetworkTest, ACancelledRunFinishesNowhere) {
  const Plans plans = AllPlans(*FindAllreduce("ring").value(), Topology::Blocks(2, 1), 1000);
  World world;
  int finished = 0;
  const auto run = world.network.Run(std::make_shared<const Plans>(plans), Workers(2), [&](int) {
    ++finished;
    return OkStatus();
  });
  run->Enter(0);
  run->Enter(1);
  world.queue.Schedule(10, 0, [run] {
    run->Cancel();
    return OkStatus();
  });
  world.RunAll();
  EXPECT_EQ(finished, 0);
}

}  // namespace
}  // namespace ringtail
