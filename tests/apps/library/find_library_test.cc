// Projects of others find the library after `cmake --install`, by CMake and by pkg-config.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>

#include "core/storage/file.h"
#include "tests/testing/process.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using ::testing::HasSubstr;

// Installs to `prefix`, and builds tests/apps/library/project/ with what is there by `command`,
// which makes "classify". It opens a network that is not there.
void ExpectBuildsAndRuns(const TempDir& prefix, const std::string& command) {
  const ProcessResult installed =
      RunProcess({"cmake", "--install", RT_BINARY_DIR, "--prefix", prefix.path()});
  ASSERT_EQ(installed.exit_code, 0) << installed.err;
  std::filesystem::copy(RT_SOURCE_DIR "/tests/apps/library/project", prefix.File("project"));
  const ProcessResult built = RunProcess({"env", "--chdir=" + prefix.File("project"),
                                          "PREFIX=" + prefix.path(), "/bin/sh", "-c", command});
  ASSERT_EQ(built.exit_code, 0) << built.out << built.err;
  const ProcessResult run = RunProcess({prefix.File("project/classify"), "/none", "cat.jpg"},
                                       {"LD_LIBRARY_PATH=" + prefix.File("lib")});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("/none"));
}

TEST(FindLibrary, ByCMake) {
  ExpectBuildsAndRuns(TempDir(),
                      R"(cmake -B . -S . -D CMAKE_PREFIX_PATH="$PREFIX" && cmake --build .)");
}

TEST(FindLibrary, ByPkgConfig) {
  ExpectBuildsAndRuns(TempDir(), R"(
    export PKG_CONFIG_PATH="$PREFIX/lib/pkgconfig"
    cc -o classify classify.c $(pkg-config --cflags --libs ringtail)
  )");
}

TEST(ManPage, NamesEveryFunctionOfTheHeader) {
  const std::string header =
      ReadFileText(RT_SOURCE_DIR "/apps/library/ringtail.h", 1 << 20).value();
  const std::string page = ReadFileText(RT_SOURCE_DIR "/apps/library/ringtail.3", 1 << 20).value();
  const std::regex declaration(R"(RINGTAIL_API [^;(]*\b(ringtail_\w+)\()");
  int functions = 0;
  for (std::sregex_iterator at(header.begin(), header.end(), declaration), end; at != end; ++at) {
    ++functions;
    EXPECT_THAT(page, HasSubstr((*at)[1].str() + "("));
  }
  EXPECT_EQ(functions, 9);
}

}  // namespace
}  // namespace ringtail
