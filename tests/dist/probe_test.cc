// The probe over every kind of world, and over one whose links are slow in a known way. Times are
// only bounded from below: nothing is too fast, however loaded the machine.
#include "dist/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "dist/communicator.h"
#include "dist/transport/in_process.h"
#include "tests/dist/test_world.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

struct Shape {
  int world, ranks_per_host;
};

std::vector<double> Numbers(const NetworkModel& network) {
  const LinkModel &a = network.within_host, &b = network.between_hosts;
  return {a.latency_s,
          a.seconds_per_byte,
          a.reduce_seconds_per_byte,
          b.latency_s,
          b.seconds_per_byte,
          b.reduce_seconds_per_byte,
          network.cpu_seconds_per_byte,
          network.cpu_seconds_per_message};
}

std::vector<NetworkModel> ProbeOnAll(const World& world, const Topology& topology) {
  std::vector<NetworkModel> networks(world.size());
  OnEveryRank(static_cast<int>(world.size()), [&](int rank) {
    const auto network = ProbeNetwork(world[rank].get(), topology);
    ASSERT_TRUE(network.ok()) << network.status().ToString();
    networks[rank] = *network;
  });
  return networks;
}

class ProbeTest : public testing::TestWithParam<WorldKind> {};

TEST_P(ProbeTest, EveryRankGetsTheSameBits) {
  for (const auto [size, per_host] :
       {Shape{2, 2}, {2, 1}, {4, 2}, {5, 3}, {3, 3}, {5, 5}, {7, 1}}) {
    const World world = GetParam().make(size);
    const auto networks = ProbeOnAll(world, Topology::Blocks(size, per_host));
    for (const double number : Numbers(networks[0]))
      EXPECT_GT(number, 0) << size << "/" << per_host;
    for (const NetworkModel& other : networks) EXPECT_EQ(Numbers(other), Numbers(networks[0]));
    const bool two_kinds = per_host > 1 && per_host < size;
    EXPECT_EQ(networks[0].within_host.latency_s == networks[0].between_hosts.latency_s, !two_kinds);
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, ProbeTest, testing::ValuesIn(AllWorldKinds()),
                         [](const auto& info) { return info.param.name; });

// Each message to another host takes a fixed time, and each of its bytes as well.
class SlowBetweenHosts : public Transport {
 public:
  static constexpr std::chrono::milliseconds kLatency{3};
  static constexpr double kSecondsPerByte = 20e-9;

  SlowBetweenHosts(std::unique_ptr<Transport> transport, Topology topology)
      : transport_(std::move(transport)), topology_(std::move(topology)) {}
  int rank() const override { return transport_->rank(); }
  int world_size() const override { return transport_->world_size(); }
  void StartSend(int peer, const MessageLabel& label, std::span<const std::byte> bytes,
                 CompletionTarget done) override {
    if (topology_.host_of_rank[rank()] != topology_.host_of_rank[peer]) {
      std::this_thread::sleep_for(
          kLatency +
          std::chrono::duration<double>(static_cast<double>(bytes.size()) * kSecondsPerByte));
    }
    transport_->Send(peer, label, bytes, done);
  }
  void StartReceive(int peer, const MessageLabel& label, ReceiveBuffer buffer,
                    CompletionTarget done) override {
    transport_->Receive(peer, label, buffer, done);
  }
  Traffic TrafficWith(int peer) const override { return transport_->traffic(peer); }
  void Abort(const Status& cause) override { transport_->Abort(cause); }
  Status EndCause() const override { return transport_->EndCause(); }

 private:
  const std::unique_ptr<Transport> transport_;
  const Topology topology_;
};

TEST(ProbeOfSlowLinksTest, TellsTheTwoKindsOfLinksApart) {
  const Topology topology = Topology::Blocks(4, 2);
  World world;
  for (auto& transport : MakeInProcessWorld(4)) {
    world.push_back(std::make_unique<SlowBetweenHosts>(std::move(transport), topology));
  }
  const NetworkModel network = ProbeOnAll(world, topology)[0];
  EXPECT_GE(network.between_hosts.latency_s, 3e-3);
  EXPECT_NE(network.within_host.latency_s, network.between_hosts.latency_s);
}

TEST(ProbeOfOneRankTest, FindsOnlyHowFastItAdds) {
  const World world = MakeInProcessWorld(1);
  const NetworkModel network = ProbeOnAll(world, Topology::Blocks(1, 1))[0];
  EXPECT_EQ(network.within_host.latency_s, 0);
  EXPECT_EQ(network.between_hosts.seconds_per_byte, 0);
  EXPECT_GT(network.within_host.reduce_seconds_per_byte, 0);
}

TEST(ProbeOfABrokenWorldTest, SaysWhatItWasDoing) {
  const World world = MakeInProcessWorld(2);
  world[1]->Abort(Internal("no more"));
  const auto network = ProbeNetwork(world[0].get(), Topology::Blocks(2, 1));
  ASSERT_FALSE(network.ok());
  EXPECT_THAT(network.status().message(), HasSubstr("measuring the network"));
  EXPECT_THAT(network.status().message(), HasSubstr("no more"));
}

TEST(DescribeLinkTest, IsShort) {
  EXPECT_EQ(DescribeLink({.latency_s = 85e-6,
                          .seconds_per_byte = 1 / 1.2e9,
                          .reduce_seconds_per_byte = 1 / 9.1e9}),
            "latency 85 us, 1.2 GB/s each way, adding 9.1 GB/s");
}

}  // namespace
}  // namespace ringtail
