// A process that is told to stop while it waits for others stops waiting, wherever that is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "core/stop_signal.h"
#include "dist/membership/join.h"
#include "dist/transport/door/socket_address.h"
#include "dist/transport/grpc/grpc_listener.h"
#include "tests/dist/membership/join_ranks.h"

namespace ringtail {
namespace {

using ::testing::HasSubstr;

// Far longer than it may take to notice; a process that does not notice fails with another error.
constexpr std::chrono::seconds kLong{60};

class ToldToStopTest : public testing::Test {
 protected:
  ~ToldToStopTest() override { SetStopSignalForTest(0); }

  static JoinOptions Options(int rank, int port) {
    JoinOptions options = TestJoinOptions(rank, 3, port);
    options.join_timeout = options.name_timeout = kLong;
    return options;
  }
  static void ExpectStopped(const Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kCancelled) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("stopped by SIGTERM"));
  }
};

TEST_F(ToldToStopTest, RankZeroAndOneThatItKnows) {
  const ReservedPort port;
  Status zero, one;
  {
    std::jthread first([&] { zero = JoinWorld(Options(0, port.number())).status(); });
    // A rank is known to the rendezvous once it is refused there a second time: rank 2 is told what
    // it has wrong, whatever the others wait for.
    std::jthread second([&] { one = JoinWorld(Options(1, port.number())).status(); });
    JoinOptions stranger = Options(2, port.number());
    stranger.token = "another token";
    EXPECT_EQ(JoinWorld(stranger).status().code(), StatusCode::kPermissionDenied);
    SetStopSignalForTest(SIGTERM);
  }
  ExpectStopped(zero);
  ExpectStopped(one);
}

TEST_F(ToldToStopTest, ARankWithoutRankZero) {
  const ReservedPort port;
  Status status;
  {
    std::jthread rank([&] { status = JoinWorld(Options(1, port.number())).status(); });
    SetStopSignalForTest(SIGTERM);
  }
  ExpectStopped(status);
}

TEST_F(ToldToStopTest, ARankWhosePeersDoNotConnect) {
  auto listener = *ListenGrpc("127.0.0.1:0", {.connect_timeout = kLong});
  const auto absent = *ListenGrpc("127.0.0.1:0", {});
  const std::vector<std::string> addresses{absent->address(), listener->address()};
  SetStopSignalForTest(SIGTERM);
  const auto transport = listener->Connect({.rank = 1, .addresses = addresses});
  ASSERT_FALSE(transport.ok());
  ExpectStopped(transport.status());
  EXPECT_THAT(transport.status().message(), HasSubstr("rank 0 (127.0.0.1"));
}

TEST_F(ToldToStopTest, ALookUp) {
  SetStopSignalForTest(SIGTERM);
  ExpectStopped(ResolveHost("localhost", 1, std::chrono::steady_clock::now() + kLong).status());
}

}  // namespace
}  // namespace ringtail
