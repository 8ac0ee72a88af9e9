#include "apps/plan/link_rate.h"

#include <gtest/gtest.h>

namespace ringtail {
namespace {

TEST(LinkRateTest, ReadsRatesAsPeopleWriteThem) {
  EXPECT_EQ(ParseBitRate("1gbit").value(), 1e9);
  EXPECT_EQ(ParseBitRate("100mbit").value(), 1e8);
  EXPECT_EQ(ParseBitRate("31.25 Mbit/s").value(), 31.25e6);
  EXPECT_EQ(ParseBitRate("1kbit").value(), 1e3);
}

TEST(LinkRateTest, RefusesWhatIsNoRate) {
  for (const char* text : {"", "1", "gbit", "1gb", "-1gbit", "0mbit", "nangbit", "infgbit",
                           "1e99gbit", "1gbit/h", "0.1kbit"}) {
    EXPECT_FALSE(ParseBitRate(text).ok()) << text;
  }
}

TEST(LinkRateTest, ReadsHosts) {
  EXPECT_EQ(ParseHosts("8").value(), std::pair(8, 8));
  EXPECT_EQ(ParseHosts("1..32").value(), std::pair(1, 32));
  EXPECT_EQ(ParseHosts("1024").value(), std::pair(1024, 1024));
}

TEST(LinkRateTest, RefusesWhatIsNoNumberOfHosts) {
  for (const char* text : {"", "0", "-1", "1025", "4..2", "1..", "..4", "1...4", "8x", "1.5"}) {
    EXPECT_FALSE(ParseHosts(text).ok()) << text;
  }
}

}  // namespace
}  // namespace ringtail
