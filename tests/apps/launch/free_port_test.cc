#include "apps/launch/free_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

namespace ringtail {
namespace {

using testing::Pair;

TEST(FreePortTest, IsNotOneOfOutgoingConnections) {
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  const auto [first, last] =
      OutgoingPorts({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
  if (first <= 11000 && last >= 65000) GTEST_SKIP() << "this machine has hardly any other ports";
  std::set<int> ports;
  for (int i = 0; i < 100; ++i) {
    const auto port = FindFreePort();
    ASSERT_TRUE(port.ok()) << port.status().message();
    EXPECT_TRUE(*port < first || *port > last) << *port;
    ports.insert(*port);
  }
  EXPECT_GT(ports.size(), 50U);  // launchers that look at the same time find different ones
}

TEST(FreePortTest, ReadsTheRangeOfTheKernel) {
  EXPECT_THAT(OutgoingPorts("20000\t30000\n"), Pair(20000, 30000));
  for (const char* wrong : {"", "a b", "5", "30000 20000", "-1 5"}) {
    EXPECT_THAT(OutgoingPorts(wrong), Pair(32768, 60999)) << wrong;
  }
}

}  // namespace
}  // namespace ringtail
