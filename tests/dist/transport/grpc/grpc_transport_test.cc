// What only the transport over gRPC has: connecting, strangers, and peers that die.
#include "dist/transport/grpc/grpc_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "core/check.h"
#include "dist/transport/frames/control_payload.h"
#include "dist/transport/grpc/grpc_server.h"
#include "tests/dist/test_world.h"
#include "tests/testing/process.h"

namespace ringtail {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<TransportListener> Listen(const TransportOptions& options = {}) {
  return std::move(*ListenGrpc("127.0.0.1:0", options));
}

TEST(GrpcListener, TellsThePortThatItGot) {
  const auto listener = Listen();
  EXPECT_THAT(listener->address(), ::testing::MatchesRegex("127.0.0.1:[1-9][0-9]+"));
}

TEST(GrpcListener, APortInUseIsAnErrorThatNamesIt) {
  const auto listener = Listen();
  const auto second = ListenGrpc(listener->address(), {});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(second.status().message(), HasSubstr(listener->address()));
}

TEST(GrpcListener, OnlyLoopbackAndFilesStayInThisMachine) {
  for (const char* address : {"127.0.0.1:0", "127.0.0.9:4000", "[::1]:4000", "localhost:4000",
                              "unix:/run/user/1000/rank0.sock"}) {
    EXPECT_TRUE(StaysInThisMachine(address)) << address;
  }
  for (const char* address : {"10.0.0.7:4000", "0.0.0.0:4000", "[::]:0", "[::12]:1",
                              "[fe80::1]:4000", "node3:4000", "127:1"}) {
    EXPECT_FALSE(StaysInThisMachine(address)) << address;
  }
}

TEST(GrpcTransport, RanksMayComeInAnyOrder) {
  for (const int first : {0, 1}) {
    auto zero = Listen(), one = Listen();
    const std::vector<std::string> addresses{zero->address(), one->address()};
    World world(2);
    {
      std::vector<std::unique_ptr<TransportListener>> listeners;
      listeners.push_back(std::move(zero));
      listeners.push_back(std::move(one));
      const auto connect = [&](int rank) {
        world[rank] = std::move(*listeners[rank]->Connect({.rank = rank, .addresses = addresses}));
      };
      const std::jthread early([&] { connect(first); });
      connect(1 - first);
    }
    EXPECT_EQ(world[0]->world_size(), 2);
  }
}

TEST(GrpcTransport, RanksThatDoNotComeAreNamed) {
  auto listener = Listen({.connect_timeout = std::chrono::milliseconds(200)});
  const auto absent = Listen();  // takes connections, and never connects
  const std::vector<std::string> addresses{"unix:/nonexistent/rank0", listener->address(),
                                           absent->address()};
  const auto transport = listener->Connect({.rank = 1, .addresses = addresses});
  ASSERT_FALSE(transport.ok());
  EXPECT_EQ(transport.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(transport.status().message(),
            "rank 1 has waited 200 ms for rank 0 (unix:/nonexistent/rank0), rank 2 (" +
                absent->address() + ")");
}

// Rank 0 of a world of two; what becomes of a rank 1 with `stranger` as its idea of the world. The
// right rank 1 comes after it, and is taken in.
Status MeetStranger(PeerTable stranger) {
  auto zero = Listen(), one = Listen();
  const std::vector<std::string> addresses{zero->address(), one->address()};
  stranger.addresses[0] = addresses[0];
  Status turned_away;
  std::jthread ranks([&] {
    const auto wrong = Listen()->Connect(stranger);
    if (!wrong.ok()) turned_away = wrong.status();
    const auto right = one->Connect(
        {.rank = 1, .generation = 5, .addresses = addresses, .secret = "the world's secret"});
    EXPECT_TRUE(right.ok()) << right.status().ToString();
  });
  const auto host = zero->Connect(
      {.rank = 0, .generation = 5, .addresses = addresses, .secret = "the world's secret"});
  EXPECT_TRUE(host.ok()) << host.status().ToString();
  ranks.join();
  return turned_away;
}

TEST(GrpcTransport, ARankOfAnotherWorldIsTurnedAwayAndToldWhy) {
  Status status = MeetStranger({.rank = 1, .generation = 4, .addresses = {"", "unused"}});
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("rank 0 (127.0.0.1:"), HasSubstr("did not take rank 1 in"),
                    HasSubstr("this is generation 5 of the job, not 4")));
  status = MeetStranger({.rank = 1, .generation = 5, .addresses = {"", "unused", "unused"}});
  EXPECT_THAT(status.message(), HasSubstr("this world has 2 ranks, not 3"));
}

TEST(GrpcTransport, ARankWithoutTheSecretIsTurnedAway) {
  for (const std::string secret : {"", "another secret"}) {
    const Status status =
        MeetStranger({.rank = 1, .generation = 5, .addresses = {"", "unused"}, .secret = secret});
    EXPECT_THAT(status.message(), HasSubstr("the hello does not prove the job's secret"));
  }
}

TEST(GrpcTransport, AHelloProvesTheSecretForItsOwnDirectionAndWorldAlone) {
  const Hello hello{.rank = 2, .peer = 1, .world_size = 4};
  const std::string proof = HelloProof("secret", 5, hello);
  EXPECT_EQ(proof.size(), 32U);
  EXPECT_NE(proof, HelloProof("secret", 5, {.rank = 1, .peer = 2, .world_size = 4}));
  EXPECT_NE(proof, HelloProof("secret", 6, hello));
  EXPECT_NE(proof, HelloProof("secreT", 5, hello));
  EXPECT_EQ(HelloProof("", 5, hello), "");
}

// Bytes that are no HTTP/2, and connections that say nothing.
TEST(GrpcTransport, StrangersDisturbNoRank) {
  auto zero = Listen(), one = Listen();
  const std::string address = zero->address();
  sockaddr_in to{.sin_family = AF_INET,
                 .sin_port = htons(std::stoi(address.substr(address.rfind(':') + 1))),
                 .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  std::vector<int> strangers;
  for (int i = 0; i < 50; ++i) {
    strangers.push_back(socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(connect(strangers.back(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    const std::vector<std::byte> garbage = PatternBytes(i % 2 == 0 ? 0 : 300, i);
    ASSERT_EQ(send(strangers.back(), garbage.data(), garbage.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(garbage.size()));
  }
  const std::vector<std::string> addresses{address, one->address()};
  World world(2);
  {
    const std::jthread thread(
        [&] { world[1] = std::move(*one->Connect({.rank = 1, .addresses = addresses})); });
    world[0] = std::move(*zero->Connect({.rank = 0, .addresses = addresses}));
  }
  CompletionQueue queue;
  const std::vector<std::byte> sent = PatternBytes(1000, 1);
  std::vector<std::byte> received(1000);
  world[0]->Send(1, {}, sent, {.queue = &queue, .id = 0});
  world[1]->Receive(0, {}, received, {.queue = &queue, .id = 1});
  for (const Status& status : Await(&queue, 2)) EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(received, sent);
  for (const int socket : strangers) close(socket);
}

// ---- other processes: tests/dist/transport/transport_rank_main.cc -------------------------------

struct RemoteRank {
  explicit RemoteRank(const std::string& address_of_zero)
      : process({std::string(RT_BINARY_DIR) + "/tests/dist_transport_rank_main", address_of_zero}),
        address(process.ReadLine().value()) {}
  ChildProcess process;
  std::string address;
};

std::unique_ptr<Transport> ConnectTo(RemoteRank* remote,
                                     std::unique_ptr<TransportListener> listener) {
  const std::vector<std::string> addresses{listener->address(), remote->address};
  auto transport = std::move(*listener->Connect({.rank = 0, .addresses = addresses}));
  RT_CHECK(remote->process.ReadLine() == "connected", "the other rank is connected");
  return transport;
}

TEST(GrpcTransport, AKilledRankIsNamedWithItsAddress) {
  auto listener = Listen();
  RemoteRank remote(listener->address());
  const auto transport = ConnectTo(&remote, std::move(listener));
  CompletionQueue queue;
  std::vector<std::byte> memory(8);
  transport->Receive(1, {.tag = {.collective = 3}}, memory, {.queue = &queue});
  // More than fits into any socket: at its death the rank is being sent to.
  const std::vector<std::byte> large(64 << 20);
  transport->Send(1, {.tag = {.collective = 4}}, large, {.queue = &queue, .id = 1});
  remote.process.Signal(SIGKILL);
  const std::vector<Status> statuses = Await(&queue, 2);
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr("lost rank 1 (" + remote.address + ")"));
  }
  EXPECT_THAT(statuses[0].message(),
              HasSubstr("receiving 8 bytes from rank 1 (collective 3, step 0, segment 0)"));
}

// No process reads or closes; keepalive notices, and the memory of what was sent comes back.
TEST(GrpcTransport, AStoppedRankIsLostWhenItDoesNotAnswerKeepalive) {
  auto listener = Listen({.keepalive_time = std::chrono::milliseconds(500),
                          .keepalive_timeout = std::chrono::milliseconds(3000)});
  RemoteRank remote(listener->address());
  const auto transport = ConnectTo(&remote, std::move(listener));
  remote.process.Signal(SIGSTOP);
  CompletionQueue queue;
  std::vector<std::byte> memory(8);
  transport->Receive(1, {.tag = {.collective = 3}}, memory, {.queue = &queue});
  const Status status = Await(&queue, 1)[0];
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("lost rank 1"));
}

// The other end has read nothing for a while, the socket is full, and we abort: the memory has to
// come back although it will never be read.
TEST(GrpcTransport, AbortGetsMemoryBackFromAStoppedRank) {
  auto listener = Listen();
  RemoteRank remote(listener->address());
  const auto transport = ConnectTo(&remote, std::move(listener));
  remote.process.Signal(SIGSTOP);
  CompletionQueue queue;
  constexpr size_t kMessages = 7;
  const std::vector<std::byte> sent(kMessages << 19);
  for (size_t i = 0; i < kMessages; ++i) {
    transport->Send(1, {.tag = {.collective = i}}, std::span(sent).subspan(i << 19, 1 << 19),
                    {.queue = &queue, .id = i});
  }
  transport->Abort(Cancelled("enough"));
  for (const Status& status : Await(&queue, kMessages)) {
    if (!status.ok()) {
      EXPECT_THAT(status.message(), AllOf(HasSubstr("to rank 1"), HasSubstr("enough")));
    }
  }
}

}  // namespace
}  // namespace ringtail
