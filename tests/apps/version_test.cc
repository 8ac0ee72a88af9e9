// The build id: equal for equal files in any folder, different for any other source.
#include "apps/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "tests/apps/program.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Ne;

void Write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

// The build id of a repository in `folder`, by apps/build_id.cmake.
std::string IdOf(const std::string& folder, const std::string& tools = "GNU 12.2.0 -O3") {
  const TempDir made;
  const std::string output = made.File("build_id.cc");
  const ProcessResult result =
      RunProcess({"cmake", "-DSOURCE=" + folder, "-DTOOLS=" + tools, "-DOUTPUT=" + output, "-P",
                  RT_SOURCE_DIR "/apps/build_id.cmake"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::ifstream file(output);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::smatch id;
  EXPECT_TRUE(std::regex_search(text, id, std::regex("kBuildId\\[\\] = \"([0-9a-f]{12})\"")))
      << text;
  return id[1];
}

void WriteSources(const std::string& folder) {
  Write(folder + "/CMakeLists.txt", "project(Ringtail)");
  Write(folder + "/core/check.h", "// check");
  Write(folder + "/dist/transport/frames/frame.cc", "// frame");
  Write(folder + "/apps/run.proto", "// run");
}

TEST(BuildId, IsThatOfTheSources) {
  const TempDir one, other;
  WriteSources(one.path());
  WriteSources(other.path());
  const std::string id = IdOf(one.path());
  EXPECT_EQ(IdOf(one.path()), id);
  EXPECT_EQ(IdOf(other.path()), id) << "in another folder, at another time";
  EXPECT_THAT(IdOf(one.path(), "GNU 13.1.0 -O3"), Ne(id)) << "with another compiler";
  Write(other.File("README.md"), "# Ringtail");
  Write(other.File("tests/core/check_test.cc"), "// test");
  EXPECT_EQ(IdOf(other.path()), id) << "no program is made of these";
}

TEST(BuildId, IsAnotherForAnyOtherSource) {
  const TempDir folder;
  WriteSources(folder.path());
  const std::string id = IdOf(folder.path());
  for (const char* file : {"CMakeLists.txt", "core/check.h", "dist/transport/frames/frame.cc",
                           "apps/run.proto", "layers/kernels/new.cc"}) {
    Write(folder.File(file), "// changed");
    EXPECT_THAT(IdOf(folder.path()), Ne(id)) << file;
    std::filesystem::remove(folder.File("layers/kernels/new.cc"));
    WriteSources(folder.path());
    EXPECT_EQ(IdOf(folder.path()), id) << file;
  }
}

TEST(BuildId, IsPrintedByTheProgram) {
  EXPECT_THAT(kBuildId, MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(BuildVersionOfRank(), std::string(kRingtailVersion) + "-" + kBuildId);
  EXPECT_THAT(RunDogsVsCats({"--version"}).out,
              HasSubstr("ringtail " + BuildVersionOfRank() + " "));
}

}  // namespace
}  // namespace ringtail
