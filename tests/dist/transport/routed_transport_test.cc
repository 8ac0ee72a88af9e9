// RoutedTransport beside a wire that is not gRPC: threads of this process. (That it is a transport
// like the others: "shared_memory" and "two_hosts" in transport_test.cc.)
#include "dist/transport/routed_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "dist/membership/identity/host_identity.h"
#include "dist/transport/in_process.h"
#include "dist/transport/shared_memory/shared_memory_offer.h"
#include "tests/dist/test_world.h"

namespace ringtail {
namespace {

using ::testing::HasSubstr;

class InProcessListener : public TransportListener {
 public:
  explicit InProcessListener(std::unique_ptr<Transport> transport)
      : transport_(std::move(transport)) {}
  const std::string& address() const override { return address_; }
  StatusOr<std::unique_ptr<Transport>> Connect(const PeerTable&, TransportObserver*) override {
    return std::move(transport_);
  }

 private:
  const std::string address_ = "in process";
  std::unique_ptr<Transport> transport_;
};

PeerTable Table(int rank, const std::vector<std::string>& keys) {
  return {.rank = rank,
          .generation = 1,
          .addresses = std::vector<std::string>(keys.size(), "in process"),
          .memory_keys = keys};
}

uint64_t SentByWire(const Transport* wire, int peer) { return wire->traffic(peer).sent; }

TEST(RoutedTransport, MessagesBetweenRanksOfOneHostDoNotUseTheWire) {
  constexpr int kRanks = 3;
  World wires = MakeInProcessWorld(kRanks);
  std::vector<Transport*> wire;
  for (const auto& transport : wires) wire.push_back(transport.get());
  const std::vector<std::string> keys = {SharedMemoryKey(), SharedMemoryKey(), "another host"};
  World world(kRanks);
  OnEveryRank(kRanks, [&](int rank) {
    InProcessListener listener(std::move(wires[rank]));
    world[rank] = std::move(*ConnectRouted(&listener, Table(rank, keys)));
  });
  EXPECT_EQ(world[2].get(), wire[2]);  // alone on its host
  const uint64_t agreeing = SentByWire(wire[0], 1);

  CompletionQueue queue;
  const std::vector<std::byte> sent = PatternBytes(1 << 20, 1);
  std::vector<std::byte> near(sent.size()), far(sent.size());
  world[0]->Send(1, {.tag = {.collective = 1}}, sent, {&queue, 0});
  world[0]->Send(2, {.tag = {.collective = 1}}, sent, {&queue, 1});
  world[1]->Receive(0, {.tag = {.collective = 1}}, near, {&queue, 2});
  world[2]->Receive(0, {.tag = {.collective = 1}}, far, {&queue, 3});
  for (const Status& status : Await(&queue, 4)) EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(near, sent);
  EXPECT_EQ(far, sent);
  EXPECT_EQ(SentByWire(wire[0], 1), agreeing);
  EXPECT_EQ(SentByWire(wire[0], 2), 1);
  EXPECT_GT(world[0]->traffic(1).sent, 0);
}

TEST(RoutedTransport, ARankThatDoesNotAnswerIsNotWaitedForForEver) {
  World wires = MakeInProcessWorld(2);
  InProcessListener listener(std::move(wires[0]));
  const auto transport = ConnectRouted(&listener, Table(0, {SharedMemoryKey(), SharedMemoryKey()}),
                                       std::chrono::milliseconds(50));
  ASSERT_FALSE(transport.ok());
  EXPECT_EQ(transport.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(transport.status().message(),
              HasSubstr("rank 0 waits in vain for a rank of its host"));
}

TEST(SharedMemoryOffer, IsReadAsItWasWritten) {
  EXPECT_EQ(DecodeOffer(EncodeOffer(std::nullopt)), std::nullopt);
  const SharedMemoryOffer offer{
      .segment = {.pid = int64_t{1} << 40, .file = 12, .key = "0123456789abcdef"},
      .offset = 3 << 16,
      .ring_bytes = 1 << 20};
  EXPECT_EQ(DecodeOffer(EncodeOffer(offer)), offer);
}

}  // namespace
}  // namespace ringtail
