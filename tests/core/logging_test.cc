#include "core/logging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringtail {
namespace {

using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

class LoggingTest : public ::testing::Test {
 protected:
  void TearDown() override { SetLogLevel(LogLevel::kInfo); }

  // The level letters of what comes out at `level`.
  static std::string LettersAt(LogLevel level) {
    SetLogLevel(level);
    CaptureStderr();
    LogDebug("d");
    LogInfo("i");
    LogWarning("w");
    LogError("e");
    std::string letters;
    const std::string output = GetCapturedStderr();
    for (size_t i = 0; i < output.size(); ++i) {
      if (i == 0 || output[i - 1] == '\n') letters += output[i];
    }
    return letters;
  }
};

TEST_F(LoggingTest, LevelDecidesWhatComesOut) {
  EXPECT_EQ(LettersAt(LogLevel::kDebug), "DIWE");
  EXPECT_EQ(LettersAt(LogLevel::kInfo), "IWE");
  EXPECT_EQ(LettersAt(LogLevel::kWarning), "WE");
  EXPECT_EQ(LettersAt(LogLevel::kError), "E");
  EXPECT_EQ(LettersAt(LogLevel::kNone), "");
}

TEST_F(LoggingTest, LinesHaveLevelTimeAndTheMessageAsItIs) {
  CaptureStderr();
  LogInfo("50% of {} and {0:d} %s");
  EXPECT_THAT(GetCapturedStderr(),
              ::testing::MatchesRegex("I [0-9][0-9]:[0-9][0-9]:[0-9][0-9] 50% of \\{\\} and "
                                      "\\{0:d\\} %s\n"));
}

// As the names of layers, images and hosts in messages may be.
TEST_F(LoggingTest, ControlCharactersDoNotReachTheTerminal) {
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
