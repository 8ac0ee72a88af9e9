#include "core/logging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringtail {
namespace {

using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

TEST(Logging, EachLevelHasItsLetter) {
  CaptureStderr();
  LogInfo("i");
  LogWarning("w");
  LogError("e");
  EXPECT_THAT(GetCapturedStderr(), ::testing::MatchesRegex("I [^\n]* i\nW [^\n]* w\nE [^\n]* e\n"));
}

TEST(Logging, LinesHaveLevelTimeAndTheMessageAsItIs) {
  CaptureStderr();
  LogInfo("50% of {} and {0:d} %s");
  EXPECT_THAT(GetCapturedStderr(),
              ::testing::MatchesRegex("I [0-9][0-9]:[0-9][0-9]:[0-9][0-9] 50% of \\{\\} and "
                                      "\\{0:d\\} %s\n"));
}

// Names of layers, images and hosts in messages may contain them.
TEST(Logging, ControlCharactersDoNotReachTheTerminal) {
  CaptureStderr();
  for (const auto log : {LogInfo, LogWarning, LogError})
    log("a\x1B[2J\xE2\x80\xAE"
        "b");
  const std::string output = GetCapturedStderr();
  EXPECT_EQ(output.find('\x1B'), std::string::npos);
  EXPECT_EQ(output.find("\xE2\x80\xAE"), std::string::npos);
  EXPECT_THAT(output, ::testing::HasSubstr("a\\x1B[2J\\xE2\\x80\\xAEb"));
}

}  // namespace
}  // namespace ringtail
