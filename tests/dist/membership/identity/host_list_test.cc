#include "dist/membership/identity/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Expand(std::string_view text) {
  auto hosts = ExpandHostList(text);
  EXPECT_TRUE(hosts.ok()) << hosts.status().ToString();
  return hosts.ok() ? *std::move(hosts) : std::vector<std::string>();
}

std::string Refusal(std::string_view text) {
  const auto hosts = ExpandHostList(text);
  EXPECT_EQ(hosts.status().code(), StatusCode::kInvalidArgument) << text.substr(0, 80);
  return hosts.ok() ? "" : hosts.status().message();
}

TEST(HostListTest, ReadsWhatSlurmWrites) {
  EXPECT_THAT(Expand("login"), ElementsAre("login"));
  EXPECT_THAT(Expand("a,b.example.org,c_1-x"), ElementsAre("a", "b.example.org", "c_1-x"));
  EXPECT_THAT(Expand("n[1-3]"), ElementsAre("n1", "n2", "n3"));
  EXPECT_THAT(Expand("n[1-2,07-08,12],m3"), ElementsAre("n1", "n2", "n07", "n08", "n12", "m3"));
  EXPECT_THAT(Expand("n[098-101]"), ElementsAre("n098", "n099", "n100", "n101"));
  EXPECT_THAT(Expand("n[8-11]-ib"), ElementsAre("n8-ib", "n9-ib", "n10-ib", "n11-ib"));
  EXPECT_THAT(Expand("r[1-2]c[0,2]"), ElementsAre("r1c0", "r1c2", "r2c0", "r2c2"));
}

TEST(HostListTest, NamesThePlaceOfWhatIsWrong) {
  EXPECT_THAT(Refusal(""), HasSubstr("a host without a name at byte 1"));
  EXPECT_THAT(Refusal("a,,b"), HasSubstr("a host without a name at byte 3"));
  EXPECT_THAT(Refusal("a,"), HasSubstr("a host without a name at byte 3"));
  EXPECT_THAT(Refusal("n[1-"), HasSubstr("expected a number of 1 to 9 digits at byte 5"));
  EXPECT_THAT(Refusal("n[]"), HasSubstr("expected a number"));
  EXPECT_THAT(Refusal("n[1-2"), HasSubstr("expected ']' at byte 6"));
  EXPECT_THAT(Refusal("n[4-2]"), HasSubstr("runs backwards"));
  EXPECT_THAT(Refusal("n]"), HasSubstr("a character that no host name has at byte 2"));
  EXPECT_THAT(Refusal("a b"), HasSubstr("a character that no host name has"));
  EXPECT_THAT(Refusal("-oProxyCommand=x"), HasSubstr("a character"));
  EXPECT_THAT(Refusal("-o"), HasSubstr("begins with '-'"));
  EXPECT_THAT(Refusal("$(reboot)"), HasSubstr("a character"));
  EXPECT_THAT(Refusal(std::string_view("a\0b", 3)), HasSubstr("a character"));
}

TEST(HostListTest, MakesNoMoreThanTheLimit) {
  EXPECT_EQ(Expand("n[1-65536]").size(), kMaxHosts);
  EXPECT_THAT(Refusal("n[0-65536]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(Refusal("n[0-999999999]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(Refusal("n[1-60000],m[1-60000]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(Refusal("n[1-60000,1-60000]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(Refusal("a[1-100]b[1-100]c[1-100]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(Refusal("n[1-99999999999]"), HasSubstr("1 to 9 digits"));
  EXPECT_THAT(Refusal("a[1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1]"), HasSubstr("pieces"));
  EXPECT_THAT(Refusal(std::string(300, 'a')), HasSubstr("more than 253 bytes"));
  EXPECT_THAT(Refusal(std::string(200, 'a') + "[1]" + std::string(60, 'b')),
              HasSubstr("more than 253 bytes"));
  EXPECT_THAT(Refusal(std::string(kMaxHostListBytes + 1, 'a')), HasSubstr("1048577 bytes"));
}

TEST(HostListTest, KnowsAHostName) {
  for (const char* name : {"a", "n1.example.org", "10.0.0.1", "fe80::1", "a_b-c"}) {
    EXPECT_TRUE(IsHostName(name)) << name;
  }
  for (const char* name : {"", "-l", "a b", "a;b", "a/b", "user@host", "a'b"}) {
    EXPECT_FALSE(IsHostName(name)) << name;
  }
}

}  // namespace
}  // namespace ringtail
