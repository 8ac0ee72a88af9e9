// Two ranks exchange megabytes over a wire that carries one in a second. That takes several times
// as long as a rank may be silent, and both are healthy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dist/communicator.h"
#include "dist/liveness/progress_monitor.h"
#include "tests/dist/test_world.h"
#include "tests/dist/transport/proxied_world.h"

namespace ringtail {
namespace {

using namespace std::chrono_literals;

constexpr int64_t kBytesPerSecond = 1 << 20;

struct SlowWorld : ProxiedWorld {
  SlowWorld() : ProxiedWorld({.over_network = true}) { proxy->Slow(kBytesPerSecond); }
};

constexpr MessageLabel kBulk{.tag = {.collective = 1}};

TEST(SlowWire, UrgentMessagesComeBeforeMegabytesThatWereSentBeforeThem) {
  SlowWorld world;
  const std::vector<std::byte> bulk(4 << 20), urgent(8);
  std::vector<std::byte> bulk_memory(bulk.size()), urgent_memory(urgent.size());
  const MessageLabel label{.tag = {.collective = Channel(kUrgentChannel).FirstCollective()}};
  CompletionQueue sent, received;
  world.ranks[0]->Receive(1, kBulk, bulk_memory, {.queue = &received, .id = 0});
  world.ranks[0]->Receive(1, label, urgent_memory, {.queue = &received, .id = 1});
  world.ranks[1]->Send(0, kBulk, bulk, {.queue = &sent, .id = 0});
  world.ranks[1]->Send(0, label, urgent, {.queue = &sent, .id = 1});
  Completion first;
  ASSERT_TRUE(received.Next(&first, TestDeadline()));
  EXPECT_EQ(first.id, 1);
  EXPECT_TRUE(first.status.ok()) << first.status.ToString();
  Completion second;
  ASSERT_TRUE(received.Next(&second, TestDeadline()));
  EXPECT_TRUE(second.status.ok()) << second.status.ToString();
  for (const Status& status : Await(&sent, 2)) EXPECT_TRUE(status.ok()) << status.ToString();
}

TEST(SlowWire, AMessageUnderWayIsSeenToMove) {
  SlowWorld world;
  const std::vector<std::byte> bulk(4 << 20);
  std::vector<std::byte> memory(bulk.size());
  CompletionQueue sent, received;
  world.ranks[0]->Receive(1, kBulk, memory, {.queue = &received});
  world.ranks[1]->Send(0, kBulk, bulk, {.queue = &sent});
  int seen = 0;  // how often more had come while the message was under way
  Completion completion;
  for (uint64_t before = 0; !received.Next(&completion, std::chrono::steady_clock::now() + 10ms);) {
    const uint64_t now = world.ranks[0]->traffic(1).received;
    seen += now > before ? 1 : 0;
    before = now;
  }
  EXPECT_TRUE(completion.status.ok()) << completion.status.ToString();
  EXPECT_GE(seen, 4);
  Await(&sent, 1);
}

// 8 s of silence, if data were silence.
TEST(SlowWire, AGatherThatTakesLongerThanSilenceMayIsNoHang) {
  SlowWorld world;
  OnEveryRank(2, [&](int rank) {
    ProgressMonitor monitor(world.ranks[rank].get(),
                            {.limits = {.interval = 100ms, .silence_limit = 3s, .stall_limit = 3s},
                             .stop_timeout = 5min});
    monitor.progress().Enter(Phase::kExchange);
    const auto communicator = std::move(
        *Communicator::Create(world.ranks[rank].get(), Topology::Blocks(2, 1),
                              {.executor = {.moved = [&monitor] { return monitor.moved(); }}}));
    std::vector<std::byte> memory(8 << 20);
    Status status = communicator->Copy(std::span(memory), /*from=*/1, /*to=*/0);
    if (status.ok()) status = communicator->Barrier();
    EXPECT_TRUE(status.ok()) << monitor.Explain(status).ToString();
    EXPECT_TRUE(status.ok() && monitor.Stop().ok());
  });
}

// One message takes 6 s, and nothing else completes meanwhile.
TEST(SlowWire, TheTimeForDataIsCountedFromItsLastMove) {
  SlowWorld world;
  OnEveryRank(2, [&](int rank) {
    Transport* const transport = world.ranks[rank].get();
    const auto communicator = std::move(
        *Communicator::Create(transport, Topology::Blocks(2, 1),
                              {.executor = {.stall_timeout = 2s, .moved = [transport, rank] {
                                              const Traffic traffic = transport->traffic(1 - rank);
                                              return traffic.sent + traffic.received;
                                            }}}));
    std::vector<std::byte> memory(6 << 20);
    const Status status = communicator->Copy(std::span(memory), 1, 0);
    EXPECT_TRUE(status.ok()) << status.ToString();
  });
}

}  // namespace
}  // namespace ringtail
