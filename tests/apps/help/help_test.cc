// Two names of one program, `help`, and the examples that end the help of each verb.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "apps/help/program_name.h"
#include "tests/apps/help/verbs.h"
#include "tests/apps/program.h"

namespace ringtail {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(ProgramNameTest, IsTheOneThatWasCalled) {
  for (const std::string name : {"ringtail", "dogs_vs_cats"}) {
    const auto run = [&](std::vector<std::string> words) {
      words.insert(words.begin(), RT_BINARY_DIR "/bin/" + name);
      return RunProcess(words);
    };
    EXPECT_THAT(run({"--help"}).out, HasSubstr("Usage: " + name + " [OPTIONS] SUBCOMMAND"));
    EXPECT_THAT(
        run({"train", "--help"}).out,
        AllOf(HasSubstr("Usage: " + name + " train"), HasSubstr("\n  " + name + " train --"),
              HasSubstr("`" + name + " configs` lists them")));
    EXPECT_THAT(run({"configs", "nosuch"}).err,
                AllOf(StartsWith(name + ": "), HasSubstr("`" + name + " configs` lists them")));
    EXPECT_THAT(run({"report"}).err,
                AllOf(StartsWith(name + ": "), HasSubstr("see `" + name + " help report`")));
  }
}

TEST(HelpTest, WithoutAVerbIsAListAndAFailure) {
  const ProcessResult nothing = RunRingtail({});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_EQ(nothing.out, "");
  EXPECT_EQ(nothing.err, RunRingtail({"--help"}).out);
}

TEST(HelpTest, IsWhatTheFlagPrints) {
  EXPECT_EQ(RunRingtail({"help"}).out, RunRingtail({"--help"}).out);
  for (const std::string verb : {"train", "help"}) {
    const ProcessResult help = RunRingtail({"help", verb});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_EQ(help.out, RunRingtail({verb, "--help"}).out);
  }
  const ProcessResult mistyped = RunRingtail({"help", "evalaute"});
  EXPECT_EQ(mistyped.exit_code, 2);
  EXPECT_THAT(mistyped.err, HasSubstr("did you mean 'evaluate'?"));
}

// The words of each example behind the program's name.
std::vector<std::vector<std::string>> ExamplesIn(const std::string& help) {
  std::vector<std::vector<std::string>> examples;
  std::istringstream lines(help.substr(help.find("\nExamples\n")));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(std::string("  ") + ProgramName() + " ")) continue;
    std::istringstream words(line);
    std::vector<std::string> example;
    for (std::string word; words >> word;) example.push_back(word);
    example.erase(example.begin());
    examples.push_back(example);
  }
  return examples;
}

TEST(HelpTest, EveryVerbHasExamplesOfItsOwnFlags) {
  for (const VerbHelp& verb : AllVerbs()) {
    ASSERT_THAT(verb.help, HasSubstr("\nExamples\n")) << verb.name;
    const auto examples = ExamplesIn(verb.help);
    EXPECT_FALSE(examples.empty()) << verb.name;
    for (const auto& example : examples) {
      EXPECT_EQ(example.front(), verb.name);
      for (const std::string& word : example) {
        if (!word.starts_with("--")) continue;
        EXPECT_TRUE(verb.flags.contains(word)) << verb.name << ": " << word;
      }
    }
  }
}

}  // namespace
}  // namespace ringtail
