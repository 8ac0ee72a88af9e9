// dogs_vs_cats emulate as a user starts it: its files, and what it measures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/storage/file.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class EmulateCommandTest : public testing::Test {
 protected:
  EmulateCommandTest() { std::ofstream(Path("tiny.textproto")) << TinyConfigText(); }
  std::string Path(const std::string& name) const { return folder_.File(name); }

  std::vector<std::string> Emulate(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {"emulate",
                                    "--config",
                                    Path("tiny.textproto"),
                                    "--data",
                                    TinyImages(),
                                    "--threads",
                                    "1",
                                    "--script-set",
                                    "workers=2",
                                    "--script-set",
                                    "compute.fixed_ms=1234"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  const TempDir folder_;
};

TEST_F(EmulateCommandTest, WhereNothingCanBeWrittenIsSaidBeforeTheTraining) {
  fs::create_directory(Path("folder"));
  std::ofstream(Path("file")) << "";
  for (const std::string& wrong : {Path("typo/net"), Path("folder"), Path("file/net")}) {
    const ProcessResult network =
        RunDogsVsCats(Emulate({"--network", wrong, "--out", Path("lines")}));
    EXPECT_NE(network.exit_code, 0) << wrong;
    EXPECT_THAT(network.err, HasSubstr(wrong));
    EXPECT_FALSE(fs::exists(Path("lines"))) << "it has trained";
    const ProcessResult lines = RunDogsVsCats(Emulate({"--out", wrong}));
    EXPECT_NE(lines.exit_code, 0) << wrong;
    EXPECT_THAT(lines.err, HasSubstr(wrong));
    EXPECT_THAT(lines.out, Not(HasSubstr("virtual s"))) << "it has trained";
  }
}

TEST_F(EmulateCommandTest, WritesLinesAndNetwork) {
  const ProcessResult run = RunDogsVsCats(Emulate({"--network", Path("net"), "--out", "-"}));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\"kind\":\"evaluation\""));
  EXPECT_THAT(run.err, HasSubstr("virtual s"));
  EXPECT_FALSE(ReadTensors(Path("net")).empty());
}

TEST_F(EmulateCommandTest, ASignalKeepsTheLinesSoFar) {
  std::vector<std::string> endless =
      DogsVsCats(Emulate({"--out", Path("lines"), "--set", "train.epochs=1e6"}));
  const std::vector<std::string> stopped = {"timeout", "--preserve-status", "-s", "INT", "5"};
  endless.insert(endless.begin(), stopped.begin(), stopped.end());
  const ProcessResult run = RunProcess(endless);
  EXPECT_EQ(run.exit_code, 130) << run.err;
  EXPECT_THAT(run.err, HasSubstr("stopped by a signal after"));
  EXPECT_THAT(ReadFileText(Path("lines"), 1 << 28).value(), HasSubstr("\"kind\":\"step\""));
}

TEST_F(EmulateCommandTest, AnErrorKeepsTheLinesSoFar) {
  const ProcessResult run = RunDogsVsCats(Emulate({"--out", Path("lines"), "--script-set",
                                                   "kill={ worker: 0 at_s: 0 }, "
                                                   "{ worker: 1 at_s: 0 }"}));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("no worker is left"));
  EXPECT_THAT(ReadFileText(Path("lines"), 1 << 20).value(), HasSubstr("\"event\":\"is missed\""));
}

TEST_F(EmulateCommandTest, MeasuresWhateverTheScriptSays) {
  const ProcessResult run = RunDogsVsCats(Emulate({"--measure"}));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("ms_per_image: "));
  EXPECT_THAT(run.out, Not(HasSubstr("1234")));
}

}  // namespace
}  // namespace ringtail
