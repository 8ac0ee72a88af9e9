// Strangers at the ports of a world, while it forms and while it runs: they are turned away, and
// no other rank notices.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

#include "dist/membership/conversation.h"
#include "dist/membership/join.h"
#include "dist/membership/membership.grpc.pb.h"
#include "dist/transport/frames/keyed_hash.h"
#include "tests/dist/membership/join_ranks.h"
#include "tests/dist/test_world.h"

namespace ringtail {
namespace {

constexpr int kGarbage = 1500;  // connections to each port

// Connects until rank 0 listens.
int ConnectPatiently(int port) {
  for (;;) {
    const int stranger = ConnectStranger(port);
    if (stranger >= 0) return stranger;
    std::this_thread::yield();
  }
}

// A world of three that has formed while garbage came.
std::vector<StatusOr<JoinedWorld>> FormAmongGarbage(int port) {
  std::vector<std::optional<StatusOr<JoinedWorld>>> joined(3);
  {
    const auto join = [&](int rank) { joined[rank] = JoinWorld(TestJoinOptions(rank, 3, port)); };
    const std::jthread zero(join, 0), one(join, 1);
    close(ConnectPatiently(port));
    PourGarbage(port, kGarbage / 2);
    const std::jthread garbage(PourGarbage, port, kGarbage / 2);
    join(2);
  }
  std::vector<StatusOr<JoinedWorld>> ranks;
  for (auto& rank : joined) ranks.push_back(std::move(*rank));
  return ranks;
}

// To the rendezvous and to every rank's listener, while ranks exchange messages.
void PourOverRunningWorld(const std::vector<StatusOr<JoinedWorld>>& ranks, int port) {
  std::vector<std::jthread> garbage;
  garbage.emplace_back(PourGarbage, port, kGarbage);
  for (const JoinedRank& rank : ranks[0]->ranks) {
    garbage.emplace_back(PourGarbage, PortOf(rank.address), kGarbage);
  }
  for (int i = 0; i < 20; ++i) ExpectWorldWorks(ranks);
}

TEST(Strangers, GarbageWhileAWorldFormsAndRuns) {
  const ReservedPort port;
  const auto ranks = FormAmongGarbage(port.number());
  ExpectWorldWorks(ranks);
  PourOverRunningWorld(ranks, port.number());
  ExpectWorldWorks(ranks);
}

// True once the other end has hung up.
bool HungUp(int socket) {
  for (;;) {
    pollfd ready{.fd = socket, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, 180'000) <= 0) return false;
    std::array<char, 4096> bytes{};
    if (recv(socket, bytes.data(), bytes.size(), 0) <= 0) return true;  // else HTTP/2's settings
  }
}

TEST(Strangers, SilentConnectionsDelayNobodyAndAreClosed) {
  const ReservedPort port;
  std::vector<int> silent;
  std::vector<std::optional<StatusOr<JoinedWorld>>> joined(2);
  {
    const auto join = [&](int rank) {
      joined[rank] = JoinWorld(TestJoinOptions(rank, 2, port.number()));
    };
    const std::jthread zero(join, 0);
    for (int i = 0; i < 400; ++i) {
      silent.push_back(ConnectPatiently(port.number()));
      // Some begin as HTTP/2 does, and then fall silent: in the preface, or after it.
      const std::string_view preface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
      const std::string_view said = preface.substr(0, i % 3 == 0 ? 0 : i % 3 == 1 ? 10 : 33);
      ASSERT_EQ(send(silent.back(), said.data(), said.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(said.size()));
    }
    join(1);
  }
  std::vector<StatusOr<JoinedWorld>> ranks;
  for (auto& rank : joined) ranks.push_back(std::move(*rank));
  const int data_port = PortOf(ranks[1]->ranks[0].address);
  for (int i = 0; i < 100; ++i) silent.push_back(ConnectPatiently(data_port));
  ExpectWorldWorks(ranks);
  for (const int socket : silent) {
    EXPECT_TRUE(HungUp(socket));
    close(socket);
  }
  ExpectWorldWorks(ranks);
}

// ---- strangers that speak gRPC ------------------------------------------------------------------

class Stream {
 public:
  explicit Stream(int port) : stub_(RendezvousService::NewStub(Channel(port))) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(3));
    context_.set_wait_for_ready(true);
    stream_ = stub_->Join(&context_);
  }
  bool Write(const SealedMessage& message) { return stream_->Write(message); }
  bool Read(SealedMessage* message) { return stream_->Read(message); }
  grpc::Status End() {
    SealedMessage message;
    while (stream_->Read(&message)) {
    }
    return stream_->Finish();
  }

 private:
  static std::shared_ptr<grpc::Channel> Channel(int port) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port),
                                     grpc::InsecureChannelCredentials(), arguments);
  }

  grpc::ClientContext context_;
  const std::unique_ptr<RendezvousService::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<SealedMessage, SealedMessage>> stream_;
};

SealedMessage Hello() {
  RendezvousMessage hello;
  hello.mutable_hello()->set_nonce(RandomBytes(kNonceBytes));
  hello.mutable_hello()->set_rank(1);
  hello.mutable_hello()->set_world_size(2);
  return Conversation::Unsealed(hello);
}

RendezvousMessage Facts() {
  const RankFacts facts{.rank = 1, .world_size = 2, .instance = "i", .host_name = "h"};
  RendezvousMessage message;
  message.mutable_facts()->set_piece(EncodeFacts(facts));
  message.mutable_facts()->set_last(true);
  return message;
}

// Rank 0 of two waits, `attempt` happens, then rank 1 comes.
void WhileRankZeroWaits(const std::function<void(int port)>& attempt) {
  const ReservedPort port;
  const std::jthread zero([&] {
    const auto world = JoinWorld(TestJoinOptions(0, 2, port.number()));
    EXPECT_TRUE(world.ok()) << world.status().ToString();
  });
  attempt(port.number());
  const auto one = JoinWorld(TestJoinOptions(1, 2, port.number()));
  EXPECT_TRUE(one.ok()) << one.status().ToString();
}

TEST(Strangers, ARecordedConversationOpensNothing) {
  WhileRankZeroWaits([](int port) {
    const std::string token = TestJoinOptions(1, 2, port).token;
    const SealedMessage hello = Hello();
    SealedMessage facts;
    {  // a rank's conversation, up to the point at which it is taken in
      Stream stream(port);
      SealedMessage challenge, welcome;
      ASSERT_TRUE(stream.Write(hello));
      ASSERT_TRUE(stream.Read(&challenge));
      Conversation conversation;
      conversation.Begin(Session::Side::kRank, "a wrong token of some other job", hello, challenge);
      facts = conversation.Seal(Facts());
      Conversation right;
      right.Begin(Session::Side::kRank, token, hello, challenge);
      facts = right.Seal(Facts());
      // Another fingerprint would end the job; the seal of a message that is changed is wrong.
      facts.mutable_body()->back() ^= 1;
      ASSERT_TRUE(stream.Write(facts));
      EXPECT_EQ(stream.End().error_code(), grpc::StatusCode::PERMISSION_DENIED);
      facts.mutable_body()->back() ^= 1;  // what an eavesdropper has heard
    }
    Stream replay(port);
    SealedMessage challenge;
    ASSERT_TRUE(replay.Write(hello));
    ASSERT_TRUE(replay.Read(&challenge));
    ASSERT_TRUE(replay.Write(facts));
    const grpc::Status status = replay.End();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_EQ(status.error_message(), "it does not have the job's token");
  });
}

TEST(Strangers, MessagesThatAreTooLongOrNonsenseAreTurnedAway) {
  WhileRankZeroWaits([](int port) {
    SealedMessage message;
    message.set_body(std::string(8192, 'x'));
    Stream large(port);
    large.Write(message);
    EXPECT_EQ(large.End().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);

    message.set_body("\xFF\xFF\xFF");
    Stream nonsense(port);
    nonsense.Write(message);
    EXPECT_EQ(nonsense.End().error_code(), grpc::StatusCode::DATA_LOSS);

    Stream no_hello(port);
    no_hello.Write(Conversation::Unsealed(Facts()));
    EXPECT_EQ(no_hello.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);

    Stream silent(port);
    EXPECT_EQ(silent.End().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  });
}

TEST(Strangers, ManyWhoBeginAConversationAndFallSilentAreReplacedByRanks) {
  WhileRankZeroWaits([](int port) {
    std::vector<std::unique_ptr<Stream>> strangers;
    SealedMessage challenge;
    for (int i = 0; i < 150; ++i) {
      strangers.push_back(std::make_unique<Stream>(port));
      strangers.back()->Write(Hello());
      EXPECT_TRUE(strangers.back()->Read(&challenge));
    }
    // More than there is room for: the first have been sent away.
    EXPECT_FALSE(strangers.front()->End().ok());
  });
}

}  // namespace
}  // namespace ringtail
