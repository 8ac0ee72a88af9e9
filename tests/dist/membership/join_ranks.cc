#include "tests/dist/membership/join_ranks.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <utility>

#include "core/check.h"
#include "tests/dist/test_world.h"

namespace ringtail {
namespace {

sockaddr_in Loopback(int port) {
  return {.sin_family = AF_INET,
          .sin_port = htons(static_cast<uint16_t>(port)),
          .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
}

}  // namespace

ReservedPort::ReservedPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int yes = 1;
  setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in at = Loopback(0);
  socklen_t bytes = sizeof(at);
  RT_CHECK(bind(socket_, reinterpret_cast<const sockaddr*>(&at), bytes) == 0 &&
               getsockname(socket_, reinterpret_cast<sockaddr*>(&at), &bytes) == 0,
           "there is a free port");
  number_ = ntohs(at.sin_port);
}

ReservedPort::~ReservedPort() { close(socket_); }

JoinOptions TestJoinOptions(int rank, int world_size, int port) {
  JoinOptions options;
  options.identity = {.rank = rank,
                      .world_size = world_size,
                      .master_address = "127.0.0.1",
                      .master_port = port,
                      .source = "test"};
  options.token = "a token for this test alone";
  options.join_timeout = options.refusal_grace = std::chrono::minutes(3);
  return options;
}

std::vector<StatusOr<JoinedWorld>> JoinAll(const std::vector<JoinOptions>& ranks) {
  std::vector<std::optional<StatusOr<JoinedWorld>>> results(ranks.size());
  OnEveryRank(static_cast<int>(ranks.size()), [&](int i) { results[i] = JoinWorld(ranks[i]); });
  std::vector<StatusOr<JoinedWorld>> joined;
  for (auto& result : results) joined.push_back(std::move(*result));
  return joined;
}

std::vector<StatusOr<JoinedWorld>> JoinAll(int world_size, int port,
                                           const std::function<void(JoinOptions*)>& change) {
  std::vector<JoinOptions> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    ranks.push_back(TestJoinOptions(rank, world_size, port));
    change(&ranks.back());
  }
  return JoinAll(ranks);
}

void ExpectWorldWorks(const std::vector<StatusOr<JoinedWorld>>& ranks) {
  for (const auto& rank : ranks) ASSERT_TRUE(rank.ok()) << rank.status().ToString();
  static std::atomic<uint64_t> collective = 0;
  const MessageLabel label{.tag = {.collective = ++collective}};
  OnEveryRank(static_cast<int>(ranks.size()), [&](int rank) {
    constexpr size_t kBytes = 100'000;
    Transport& transport = *ranks[rank]->transport;
    const int world = transport.world_size();
    const std::vector<std::byte> sent = PatternBytes(kBytes, rank);
    std::vector<std::vector<std::byte>> received(world, std::vector<std::byte>(kBytes));
    CompletionQueue queue;
    size_t operations = 0;
    for (int peer = 0; peer < world; ++peer) {
      if (peer == rank) continue;
      transport.Receive(peer, label, received[peer], {.queue = &queue, .id = operations++});
      transport.Send(peer, label, sent, {.queue = &queue, .id = operations++});
    }
    for (const Status& status : Await(&queue, operations)) {
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
    for (int peer = 0; peer < world; ++peer) {
      if (peer == rank) continue;
      EXPECT_EQ(received[peer], PatternBytes(kBytes, peer));
    }
  });
}

int ConnectStranger(int port) {
  const int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in to = Loopback(port);
  if (connect(stranger, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0) return stranger;
  close(stranger);
  return -1;
}

std::string Garbage(int kind) {
  switch (kind) {
    case 0:
      return std::string(1, '\0');
    case 1:
      return "GET / HTTP/1.1\r\nHost: ringtail\r\n\r\n";
    case 2:
      return std::string("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03", 10);
    default: {
      const std::vector<std::byte> random = PatternBytes(300, 77);
      return {reinterpret_cast<const char*>(random.data()), random.size()};
    }
  }
}

void PourGarbage(int port, int times) {
  for (int i = 0; i < times; ++i) {
    const int stranger = ConnectStranger(port);
    ASSERT_GE(stranger, 0);
    const std::string garbage = Garbage(i % 4);
    // It may have hung up on us already.
    static_cast<void>(send(stranger, garbage.data(), garbage.size(), MSG_NOSIGNAL));
    close(stranger);
  }
}

int PortOf(const std::string& address) { return std::stoi(address.substr(address.rfind(':') + 1)); }

}  // namespace ringtail
