// `cmake --install` installs programs that need no file of the build folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/testing/process.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using ::testing::HasSubstr;

// Every apps/FOLDER/NAME_main.cc.
std::vector<std::string> Programs() {
  constexpr std::string_view kMain = "_main";
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(RT_SOURCE_DIR "/apps")) {
    const std::string stem = entry.path().stem().string();
    if (entry.path().extension() != ".cc" || !stem.ends_with(kMain)) continue;
    names.push_back(stem.substr(0, stem.size() - kMain.size()));
  }
  return names;
}

TEST(Install, ProgramsRunAnywhere) {
  const TempDir prefix;
  const ProcessResult installed =
      RunProcess({"cmake", "--install", RT_BINARY_DIR, "--prefix", prefix.path()});
  ASSERT_EQ(installed.exit_code, 0) << installed.err;
  // By its name, in a folder without configs/.
  const auto run = [&](const std::string& command) {
    return RunProcess({"env", "--chdir=/", "PATH=" + prefix.File("bin"), "/bin/sh", "-c", command});
  };
  const std::vector<std::string> programs = Programs();
  EXPECT_THAT(programs, ::testing::IsSupersetOf({"dogs_vs_cats", "ringtail_launch"}));
  for (const std::string& program : programs) {
    const ProcessResult help = run(program + " --help");
    EXPECT_EQ(help.exit_code, 0) << program << ": " << help.err;
  }
  for (const std::string name : {"ringtail", "dogs_vs_cats"}) {
    const ProcessResult summary = run(name + " summary");
    EXPECT_EQ(summary.exit_code, 0) << summary.err;
    EXPECT_THAT(summary.out, HasSubstr("parameters"));
  }
  EXPECT_EQ(std::filesystem::read_symlink(prefix.File("bin/ringtail")), "dogs_vs_cats");
}

TEST(Install, ManPagesAndCompletionAreWhereTheyAreLookedFor) {
  const TempDir prefix;
  const ProcessResult installed =
      RunProcess({"cmake", "--install", RT_BINARY_DIR, "--prefix", prefix.path()});
  ASSERT_EQ(installed.exit_code, 0) << installed.err;
  for (const char* file :
       {"share/man/man1/ringtail.1", "share/man/man1/ringtail-train.1",
        "share/man/man1/dogs_vs_cats.1", "share/man/man1/ringtail_launch.1",
        "share/bash-completion/completions/ringtail",
        "share/bash-completion/completions/dogs_vs_cats",
        "share/fish/vendor_completions.d/ringtail.fish", "share/zsh/site-functions/_ringtail",
        "share/ringtail/schemas/optim/optim.proto"}) {
    EXPECT_GT(std::filesystem::file_size(prefix.File(file)), 10) << file;
  }
}

}  // namespace
}  // namespace ringtail
