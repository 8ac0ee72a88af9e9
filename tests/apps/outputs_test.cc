// The output files of the program, and its messages where it cannot write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/storage/file.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class OutputsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir;
    std::ofstream(Path("tiny.textproto")) << TinyConfigText();
    const ProcessResult train = RunDogsVsCats(Train("run"));
    ASSERT_EQ(train.exit_code, 0) << train.err;
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string Path(const std::string& name) { return folder_->File(name); }
  static std::string Text(const std::string& path) { return ReadFileText(path, 1 << 24).value(); }
  static std::vector<std::string> Train(const std::string& run) {
    return {"train",   "--config", Path("tiny.textproto"), "--data", TinyImages(), "--output",
            Path(run), "--set",    "train.epochs=1"};
  }
  static std::vector<std::string> Predict(const std::string& csv) {
    return {"predict", "--checkpoint", Path("run"), "--images", TinyImages() + "/train", "--csv",
            csv};
  }

  static TempDir* folder_;
};
TempDir* OutputsTest::folder_ = nullptr;

TEST_F(OutputsTest, ADashIsStandardOutput) {
  const ProcessResult file = RunDogsVsCats(Predict(Path("table.csv")));
  ASSERT_EQ(file.exit_code, 0) << file.err;
  const std::string table = Text(Path("table.csv"));
  EXPECT_THAT(table, StartsWith("key,label,probability\n"));
  for (const char* name : {"-", "/dev/stdout", "/dev/fd/1"}) {
    const ProcessResult out = RunDogsVsCats(Predict(name));
    EXPECT_EQ(out.exit_code, 0) << out.err;
    EXPECT_EQ(out.out, table) << name;
  }
  EXPECT_FALSE(fs::exists("-"));
}

TEST_F(OutputsTest, OtherOutputDoesNotMixWithIt) {
  const ProcessResult file =
      RunDogsVsCats({"prepare", "--data", TinyImages(), "--out", Path("tiny.pack")});
  ASSERT_EQ(file.exit_code, 0) << file.err;
  EXPECT_THAT(file.out, HasSubstr("48 images in"));
  const ProcessResult out = RunDogsVsCats({"prepare", "--data", TinyImages(), "--out", "-"});
  EXPECT_EQ(out.exit_code, 0);
  EXPECT_EQ(out.out, Text(Path("tiny.pack")));
  EXPECT_THAT(out.err, HasSubstr("48 images in -"));

  std::vector<std::string> traced = Train("traced");
  traced.insert(traced.end(), {"--trace", "-"});
  const ProcessResult trace = RunDogsVsCats(traced);
  EXPECT_EQ(trace.exit_code, 0) << trace.err;
  EXPECT_THAT(trace.out,
              AllOf(StartsWith("{"), HasSubstr("traceEvents"), Not(HasSubstr("validation: loss"))));
  EXPECT_THAT(trace.err, HasSubstr("validation: loss"));
}

// By the names of their threads: one rank talks to no other, but reads and evaluates.
TEST_F(OutputsTest, ATraceShowsWhatARankDoes) {
  std::vector<std::string> train = Train("timeline");
  train.insert(train.end(), {"--trace", Path("timeline.json")});
  const ProcessResult result = RunDogsVsCats(train);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto events = nlohmann::json::parse(Text(Path("timeline.json")))["traceEvents"];
  std::map<int64_t, std::string> threads;
  for (const auto& event : events) {
    if (event["name"] != "thread_name") continue;
    threads[event["tid"].get<int64_t>()] = event["args"]["name"].get<std::string>();
  }
  std::map<std::string, int> loader, trainer;
  for (const auto& event : events) {
    if (event["ph"] != "X") continue;
    const bool loads = threads[event["tid"].get<int64_t>()] == "rt-loader";
    ++(loads ? loader : trainer)[event["name"].get<std::string>()];
  }
  // An epoch of 40 images in batches of 8, and 8 images of validation. (Some batches are loaded ahead, in vain.)
  EXPECT_THAT(loader, testing::UnorderedElementsAre(testing::Pair("read", testing::Ge(48)),
                                                    testing::Pair("decode", testing::Ge(48)),
                                                    testing::Pair("render", testing::Ge(48))));
  EXPECT_EQ(trainer["step"], 5);
  EXPECT_EQ(trainer["forward"], 5);
  EXPECT_EQ(trainer["backward"], 5);
  EXPECT_EQ(trainer["update"], 5);
  EXPECT_EQ(trainer["evaluate"], 1);
  EXPECT_GE(trainer["wait for images"], 6);
  EXPECT_GE(trainer["checkpoint"], 1);
}

TEST_F(OutputsTest, ARunFolderIsANetwork) {
  const auto evaluate = [&] {
    return RunDogsVsCats({"evaluate", "--checkpoint", Path("copy"), "--json"});
  };
  fs::copy(Path("run"), Path("copy"), fs::copy_options::recursive);
  ProcessResult result = evaluate();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the network is " + Path("copy/final.safetensors")));
  fs::remove(Path("copy/final.safetensors"));
  EXPECT_THAT(evaluate().err, HasSubstr("the network is " + Path("copy/checkpoints/best")));
  fs::remove(Path("copy/checkpoints/best.safetensors"));
  EXPECT_THAT(evaluate().err,
              HasSubstr("the network is " + Path("copy/checkpoints/step-00000005")));
  fs::remove_all(Path("copy/checkpoints"));
  result = evaluate();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("there is no network in the folder '" + Path("copy") + "'"));
}

TEST_F(OutputsTest, APackedFileIsNotAnImageAndTheMessageNamesTheFlag) {
  ASSERT_EQ(
      RunDogsVsCats({"prepare", "--data", TinyImages(), "--out", Path("some.pack")}).exit_code, 0);
  const ProcessResult result =
      RunDogsVsCats({"predict", "--checkpoint", Path("run"), "--images", Path("some.pack")});
  EXPECT_THAT(result.err, HasSubstr("some.pack is a packed file of `prepare` and no image"));
}

// One form for every verb: "left out: <image> <what is wrong>".
TEST_F(OutputsTest, ImagesThatAreLeftOutAreNamedInOneForm) {
  fs::copy(TinyImages(), Path("images"), fs::copy_options::recursive);
  std::ofstream(Path("images/train/cat.900.jpg")) << "";
  const std::string said = "left out: cat.900.jpg is empty\n";
  const ProcessResult prepare =
      RunDogsVsCats({"prepare", "--data", Path("images"), "--out", Path("left_out.pack")});
  EXPECT_THAT(prepare.err, HasSubstr(said));
  const ProcessResult train = RunDogsVsCats(
      {"train", "--config", Path("tiny.textproto"), "--data", Path("images"), "--output",
       Path("left_out"), "--set", "train.epochs=1", "--set", "data.bad_images.max_fraction=0.5"});
  EXPECT_EQ(train.exit_code, 0) << train.err;
  EXPECT_THAT(train.err, HasSubstr(said));
}

TEST_F(OutputsTest, ResumeWithoutACheckpointTakesTheConfigOfTheFolder) {
  fs::create_directory(Path("early"));
  fs::copy_file(Path("run/config.textproto"), Path("early/config.textproto"));
  const std::vector<std::string> resume = {"train", "--output", Path("early"), "--resume"};
  const ProcessResult result = RunDogsVsCats(resume);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("no checkpoint in " + Path("early") + " yet: the run begins, with " +
                        Path("early/config.textproto")));
  EXPECT_EQ(ReadTensors(Path("early/final.safetensors")),
            ReadTensors(Path("run/final.safetensors")));
}

// As a run teaches it: train --resume RUN.
TEST_F(OutputsTest, ResumeOfAFolderWithoutACheckpointBegins) {
  fs::create_directory(Path("first"));
  fs::copy_file(Path("run/config.textproto"), Path("first/config.textproto"));
  const ProcessResult result = RunDogsVsCats({"train", "--resume", Path("first")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("no checkpoint in " + Path("first") + " yet: the run begins"));
  EXPECT_EQ(
      RunDogsVsCats({"train", "--resume", Path("first"), "--output", Path("second")}).exit_code, 0)
      << "it has checkpoints now";
  fs::create_directory(Path("third"));
  fs::copy_file(Path("run/config.textproto"), Path("third/config.textproto"));
  EXPECT_THAT(RunDogsVsCats({"train", "--resume", Path("third"), "--output", Path("fourth")}).err,
              HasSubstr("there is no checkpoint in"))
      << "another folder would begin with another config";
  fs::create_directory(Path("nothing"));
  EXPECT_THAT(RunDogsVsCats({"train", "--resume", Path("nothing")}).err,
              HasSubstr("there is no checkpoint in"));
}

TEST_F(OutputsTest, AnExplicitConfigTakesPrecedenceOverThatOfTheFolder) {
  fs::create_directory(Path("other"));
  std::ofstream(Path("other/config.textproto")) << "net { name: 'another' }";
  std::vector<std::string> resume = Train("other");
  resume.emplace_back("--resume");
  const ProcessResult result = RunDogsVsCats(resume);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("with " + Path("tiny.textproto") +
                                    " and not with the config.textproto that is there"));
  EXPECT_EQ(Text(Path("other/config.textproto")), Text(Path("run/config.textproto")));
}

TEST_F(OutputsTest, AnOutputThatIsNotAFolderIsNamed) {
  std::ofstream(Path("file")) << "mine";
  fs::create_symlink("nowhere", Path("dangling"));
  fs::create_symlink("loop", Path("loop"));
  for (const char* name : {"file", "dangling", "loop"}) {
    const ProcessResult result = RunDogsVsCats(Train(name));
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr("cannot make the folder '" + Path(name) + "': "));
    EXPECT_THAT(result.err, HasSubstr("give another --output"));
  }
  EXPECT_EQ(Text(Path("file")), "mine");
}

// The limit of file sizes imitates a disk with room for lines but not for networks.
TEST_F(OutputsTest, AFullDiskIsReportedEarlyAndWaitedForAtTheEnd) {
  std::vector<std::string> train = Train("full");
  train.back() = "train.epochs=4";
  std::vector<std::string> limited = {"sh", "-c", "ulimit -S -f 8; exec \"$0\" \"$@\" 2>&1"};
  for (const std::string& argument : DogsVsCats(train)) limited.push_back(argument);
  ChildProcess child(limited);
  std::string said;
  while (said.find("trying again for 300 s") == std::string::npos) {
    const auto line = child.ReadLine();
    ASSERT_TRUE(line.has_value()) << said;
    said += *line + "\n";
  }
  EXPECT_THAT(said, HasSubstr("no checkpoint will be written as things are"));
  EXPECT_THAT(said, HasSubstr("File too large; there is none yet\n"));
  EXPECT_THAT(said, HasSubstr("no checkpoint of step 15, 3 failures in a row"));
  EXPECT_THAT(said, HasSubstr("if the run ended now, the whole run would be lost"));
  EXPECT_FALSE(fs::exists(Path("full/final.safetensors")));

  rlimit limit = {};
  ASSERT_EQ(prlimit(child.pid(), RLIMIT_FSIZE, nullptr, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(prlimit(child.pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
  const ProcessResult result = child.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_TRUE(fs::exists(Path("full/final.safetensors")));
}

TEST_F(OutputsTest, ASignalEndsTheWaitingForRoom) {
  std::vector<std::string> limited = {"sh", "-c", "ulimit -S -f 8; exec \"$0\" \"$@\" 2>&1"};
  for (const std::string& argument : DogsVsCats(Train("stopped"))) limited.push_back(argument);
  ChildProcess child(limited);
  std::string said;
  while (said.find("trying again for 300 s") == std::string::npos) {
    const auto line = child.ReadLine();
    ASSERT_TRUE(line.has_value()) << said;
    said += *line + "\n";
  }
  child.Signal(SIGTERM);
  const ProcessResult result = child.Wait();
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_THAT(result.out, HasSubstr("the trained network is lost"));
}

}  // namespace
}  // namespace ringtail
