#include "apps/launch/resume_command.h"

#include <gtest/gtest.h>

#include "apps/launch/launch_options.h"
#include "tests/testing/process.h"

namespace ringtail {
namespace {

using Words = std::vector<std::string>;

TEST(ResumeCommand, IsTheCommandLineWithResume) {
  const Words launcher = {"ringtail_launch", "-n", "2"};
  EXPECT_EQ(ResumeCommand(launcher, Words{"dogs_vs_cats", "train", "--output", "runs/a b"}),
            "ringtail_launch -n 2 -- dogs_vs_cats train --output 'runs/a b' --resume");
  EXPECT_EQ(ResumeCommand(launcher, Words{"env", "A=1", "./bin/dogs_vs_cats", "train"}),
            "ringtail_launch -n 2 -- env A=1 ./bin/dogs_vs_cats train --resume");
  EXPECT_EQ(ResumeCommand(launcher, Words{"/usr/bin/ringtail", "train"}),
            "ringtail_launch -n 2 -- /usr/bin/ringtail train --resume");
  for (const char* resume : {"--resume", "--resume=runs/a"}) {
    EXPECT_EQ(ResumeCommand(launcher, Words{"dogs_vs_cats", "train", resume, "--threads", "1"}),
              std::string("ringtail_launch -n 2 -- dogs_vs_cats train ") + resume + " --threads 1");
  }
}

TEST(ResumeCommand, IsForTrainingOnly) {
  for (const Words& program : {Words{"bench_allreduce"}, Words{"dogs_vs_cats", "evaluate"},
                               Words{"dogs_vs_cats"}, Words{"echo", "train"}, Words{}}) {
    EXPECT_EQ(ResumeCommand(Words{"ringtail_launch", "-n", "2"}, program), "");
  }
}

TEST(ResumeCommand, HasTheLaunchersOwnWords) {
  const char* arguments[] = {"bin/ringtail_launch", "-n", "3", "--env", "A=b c", "--", "train"};
  const CommandLine line = ParseCommandLine(std::size(arguments), arguments, {});
  ASSERT_TRUE(line.options);
  EXPECT_EQ(line.options->own_words, (Words{"bin/ringtail_launch", "-n", "3", "--env", "A=b c"}));
}

TEST(ShellWord, IsUnquotedByAShell) {
  EXPECT_EQ(ShellWord("data.image_size=128"), "data.image_size=128");
  for (const std::string word : {"", "a b", "it's", "$HOME", "{}", "a;b", "*", "~", "scheme={a:1}",
                                 "\"", "\\", "a\nb", "#", "K\xC3\xA4tzchen"}) {
    const ProcessResult result = RunProcess({"sh", "-c", "printf %s. " + ShellWord(word)});
    EXPECT_EQ(result.out, word + ".") << ShellWord(word);
  }
}

}  // namespace
}  // namespace ringtail
