#include "apps/launch/host_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/storage/file.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

std::string Text(const StatusOr<std::vector<HostSlots>>& hosts) {
  if (!hosts.ok()) return hosts.status().message();
  std::string text;
  for (const HostSlots& one : *hosts) text += one.host + "=" + std::to_string(one.slots) + " ";
  return text;
}

TEST(HostSlotsTest, ReadsTheFlag) {
  EXPECT_EQ(Text(ParseHosts("a:2,b:3")), "a=2 b=3 ");
  EXPECT_EQ(Text(ParseHosts("a,b.example.org:2,10.0.0.1:4")), "a=1 b.example.org=2 10.0.0.1=4 ");
  EXPECT_EQ(Text(ParseHosts("n[1-2,08]:2,m")), "n1=2 n2=2 n08=2 m=1 ");
  EXPECT_EQ(Text(ParseHosts("[fe80::1]:2,[::1]")), "fe80::1=2 ::1=1 ");
}

TEST(HostSlotsTest, RefusesNonsense) {
  for (const char* text : {"", "a,", ",a", "a:", "a:0", "a:-1", "a:x", "a:2:3", "a b", "-oX",
                           "a;b:2", "[fe80::1", "a:99999999999", "$(x):1"}) {
    EXPECT_THAT(Text(ParseHosts(text)), HasSubstr("--hosts: ")) << text;
  }
  EXPECT_THAT(Text(ParseHosts("a:1,a:2")), HasSubstr("host 'a' is listed twice"));
}

TEST(HostSlotsTest, ReadsAHostfile) {
  EXPECT_EQ(Text(ParseHostfile("f", "# all\nn1 slots=4\n\n  n2:2\t# two\nn3\nm[1-2] slots=3")),
            "n1=4 n2=2 n3=1 m1=3 m2=3 ");
}

TEST(HostSlotsTest, TheShippedExampleIsValid) {
  const std::string name = RT_SOURCE_DIR "/configs/cluster/hosts";
  EXPECT_EQ(Text(ParseHostfile(name, *ReadFileText(name, 1 << 16))),
            "node1=2 node2=2 node3=1 node4=1 ");
}

TEST(HostSlotsTest, NamesTheLineOfAHostfile) {
  EXPECT_EQ(Text(ParseHostfile("f", "n1\nn2 slot=4\n")),
            "f:2: 'slot=4' is not slots=N with N from 1 to 65536");
  EXPECT_THAT(Text(ParseHostfile("f", "\n\nn2 slots=\n")), HasSubstr("f:3: 'slots='"));
  EXPECT_THAT(Text(ParseHostfile("f", "n1 slots=2 gpu\n")),
              HasSubstr("f:1: 'gpu' is an extra word"));
  EXPECT_THAT(Text(ParseHostfile("f", "n1\nn1\n")), HasSubstr("f:2: host 'n1' is listed twice"));
  EXPECT_THAT(Text(ParseHostfile("f", "n1\nn[4-\n")), HasSubstr("f:2: expected a number"));
  EXPECT_THAT(Text(ParseHostfile("f", "# none\n")), HasSubstr("f: the file has no host"));
}

TEST(HostSlotsTest, PlacesRanksInOrder) {
  const std::vector<HostSlots> hosts = {{"a", 2}, {"b", 3}};
  EXPECT_EQ(Text(PlaceRanks(hosts, 0)), "a=2 b=3 ");
  EXPECT_EQ(Text(PlaceRanks(hosts, 3)), "a=2 b=1 ");
  EXPECT_EQ(Text(PlaceRanks(hosts, 2)), "a=2 ");
  EXPECT_THAT(Text(PlaceRanks(hosts, 6)), HasSubstr("6 ranks do not fit into the 5 slots of 2"));
}

}  // namespace
}  // namespace ringtail
