#include "apps/help/wrapped_help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>

namespace ringtail {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(WrappedHelpTest, LinesEndBetweenWords) {
  EXPECT_EQ(Wrapped("", 8), "");
  EXPECT_EQ(Wrapped("one two three", 8), "one two\nthree");
  EXPECT_EQ(Wrapped("one two three", 7), "one two\nthree");
  EXPECT_EQ(Wrapped("a incomprehensible word", 8), "a\nincomprehensible\nword");
}

TEST(WrappedHelpTest, NoLineIsLongAndNoTwoAreBlank) {
  CLI::App app("A program", "program");
  app.formatter(std::make_shared<WrappedHelp>());
  CLI::App* const verb = app.add_subcommand("verb", "Does it");
  int threads = 0;
  std::string words;
  for (int i = 0; i < 60; ++i) words += "words ";
  verb->add_option("--threads", threads, words)->check(CLI::Range(1, 4096));
  verb->add_option("--other", threads, words)->group("More");
  const std::string help = verb->help();
  EXPECT_THAT(help, HasSubstr("--threads INT in [1 - 4096]"));
  EXPECT_THAT(help, Not(HasSubstr("\n\n\n")));
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

}  // namespace
}  // namespace ringtail
