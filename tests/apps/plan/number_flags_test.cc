// What flags of plan accept that take a number with a fraction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/apps/program.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

// Such flags, and a number that each takes.
const std::vector<std::pair<std::string, std::string>> kFlags = {{"--cores", "0.5"},
                                                                 {"--slowness", "1,1.5"},
                                                                 {"--latency-us", "0"},
                                                                 {"--cpu-s-per-gb", "1.24"},
                                                                 {"--cpu-us-per-message", "1e3"}};

ProcessResult Plan(const std::string& flag, const std::string& value) {
  return RunDogsVsCats({"plan", "--from", "/nowhere/facts", flag, value});
}

TEST(NumberFlagsTest, NanIsNoNumberOfAnyFlag) {
  for (const auto& [flag, number] : kFlags) {
    for (const char* nan : {"nan", "NaN"}) {
      const ProcessResult result = Plan(flag, nan);
      EXPECT_EQ(result.exit_code, 2) << flag;
      EXPECT_THAT(result.err, HasSubstr(flag + ": " + nan + " is not a number"));
    }
  }
  EXPECT_THAT(Plan("--slowness", "1,nan").err, HasSubstr("--slowness: nan is not a number"));
}

TEST(NumberFlagsTest, WhatIsOutOfRangeIsRefusedAndNumbersAreTaken) {
  for (const auto& [flag, number] : kFlags) {
    for (const char* wrong : {"inf", "-1", "many"}) {
      const ProcessResult result = Plan(flag, wrong);
      EXPECT_EQ(result.exit_code, 2) << flag << " " << wrong;
      EXPECT_THAT(result.err, HasSubstr(flag));
    }
    EXPECT_THAT(Plan(flag, number).err, HasSubstr("/nowhere/facts")) << flag;
  }
}

TEST(NumberFlagsTest, HelpHasTheirRanges) {
  EXPECT_THAT(RunDogsVsCats({"plan", "--help"}).out, HasSubstr("[0.01 - 4096]"));
}

}  // namespace
}  // namespace ringtail
