#include "dist/transport/door/socket_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include "dist/membership/identity/host_identity.h"
#include "dist/membership/master_address.h"
#include "dist/membership/port_holder.h"
#include "dist/transport/grpc/grpc_listener.h"
#include "tests/dist/membership/join_ranks.h"
#include "tests/dist/test_world.h"

namespace ringtail {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(SocketAddress, JoinsHostAndPort) {
  EXPECT_EQ(JoinHostPort("10.0.0.7", 80), "10.0.0.7:80");
  EXPECT_EQ(JoinHostPort("fd00::7", 80), "[fd00::7]:80");
}

TEST(SocketAddress, KnowsLoopback) {
  for (const std::string address :
       {"127.0.0.1", "127.0.1.1", "127.255.0.3", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(IsLoopbackAddress(address)) << address;
    EXPECT_TRUE(IsLoopbackHost(address)) << address;
  }
  for (const std::string address : {"128.0.0.1", "10.127.0.1", "0.0.0.0", "::", "fd00::1",
                                    "::ffff:10.0.0.1", "", "127.0.0.1.example.org"}) {
    EXPECT_FALSE(IsLoopbackAddress(address)) << address;
    EXPECT_FALSE(IsLoopbackHost(address)) << address;
  }
  EXPECT_TRUE(IsLoopbackHost("localhost"));
  EXPECT_FALSE(IsLoopbackAddress("localhost"));
  EXPECT_FALSE(IsLoopbackHost("localhost.example.org"));
  EXPECT_FALSE(IsLoopbackHost(HostName())) << "whatever /etc/hosts says of it";
}

TEST(SocketAddress, ResolvesNumbersAndNames) {
  const auto v4 = ResolveHost("10.1.2.3", 80, TestDeadline());
  ASSERT_TRUE(v4.ok());
  EXPECT_EQ(v4->front().address, "10.1.2.3");
  EXPECT_EQ(ResolveHost("fd00::7", 80, TestDeadline())->front().address, "fd00::7");
  EXPECT_TRUE(IsLoopbackAddress(ResolveHost("localhost", 80, TestDeadline())->front().address));
  EXPECT_EQ(ResolveHost("no-such-host.invalid", 80, TestDeadline()).status().code(),
            StatusCode::kNotFound);
  // A resolver that does not answer in time is not waited for.
  const auto past = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  const auto late = ResolveHost("no-such-host.invalid", 80, past);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.status().code(), StatusCode::kNotFound);
}

TEST(SocketAddress, ListensOnlyAtAddressesOfThisHost) {
  EXPECT_TRUE(TryToListen(ResolveHost("127.0.0.1", 0, TestDeadline())->front()).ok());
  EXPECT_FALSE(TryToListen(ResolveHost("192.0.2.1", 0, TestDeadline())->front()).ok());
}

TEST(FindMaster, SaysWhichEndIsOurs) {
  const auto listener = std::move(*ListenGrpc("127.0.0.1:0", {}));
  const int port = PortOf(listener->address());
  const auto way = FindMaster("localhost", port, TestDeadline());
  ASSERT_TRUE(way.ok()) << way.status().ToString();
  EXPECT_EQ(way->master.address, "127.0.0.1");
  EXPECT_EQ(way->own_address, "127.0.0.1");
}

TEST(FindMaster, SaysWhyThereIsNoWay) {
  const ReservedPort port;
  EXPECT_EQ(FindMaster("127.0.0.1", port.number(), TestDeadline()).status().code(),
            StatusCode::kUnavailable);
  EXPECT_EQ(FindMaster("no-such-host.invalid", 80, TestDeadline()).status().code(),
            StatusCode::kNotFound);
  // A multicast address: no connection leads there, whatever the network.
  const auto none = FindMaster("ff02::1", 80, TestDeadline());
  ASSERT_FALSE(none.ok());
  if (none.status().code() == StatusCode::kFailedPrecondition) {
    EXPECT_THAT(none.status().message(), StartsWith("it has an IPv6 address alone"));
  }
}

TEST(AddressToListenAt, IsTheAddressThatIsGiven) {
  EXPECT_EQ(*AddressToListenAt("127.0.0.1", TestDeadline()), "127.0.0.1");
  EXPECT_EQ(*AddressToListenAt("127.0.1.1", TestDeadline()), "127.0.1.1");
  EXPECT_TRUE(IsLoopbackAddress(*AddressToListenAt("localhost", TestDeadline())));
  EXPECT_THAT(AddressToListenAt("192.0.2.1", TestDeadline()).status().message(),
              HasSubstr("none of this host"));
}

TEST(ListeningInodes, AreThoseOfThePortInStateListen) {
  constexpr char kTable[] =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
      "inode\n"
      "   0: 0100007F:733C 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 "
      "4711 1 0\n"
      "   1: 0100007F:733C 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000        0 "
      "4712 1 0\n"
      "   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
      "4713 1 0\n"
      "   3: 00000000:733C 0000\n";
  EXPECT_THAT(ListeningInodes(kTable, 29500), ElementsAre(4711));
  EXPECT_THAT(ListeningInodes(kTable, 22), ElementsAre(4713));
  EXPECT_TRUE(ListeningInodes("", 22).empty());
}

TEST(PortHolder, NamesThisProcessForAPortOfItsOwn) {
  const auto listener = std::move(*ListenGrpc("127.0.0.1:0", {}));
  EXPECT_THAT(PortHolder(PortOf(listener->address())),
              StartsWith("pid " + std::to_string(getpid()) + " ("));
  const ReservedPort nobody_listens;
  EXPECT_EQ(PortHolder(nobody_listens.number()), "");
}

TEST(HostIdentity, IsTheSameEachTime) {
  EXPECT_FALSE(HostName().empty());
  EXPECT_EQ(HostKey(), HostKey());
  EXPECT_THAT(HostKey(), ::testing::MatchesRegex("[0-9a-f-]{36} [1-9][0-9]*"));
}

}  // namespace
}  // namespace ringtail
