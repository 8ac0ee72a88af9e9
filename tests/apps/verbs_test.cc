// Every verb of the program, end to end on a small set of drawn images.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/kernel_isa.h"
#include "core/storage/file.h"
#include "core/storage/safetensors.h"
#include "tests/apps/help/verbs.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

class VerbsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir;
    std::ofstream(Path("tiny.textproto")) << TinyConfigText();
    const ProcessResult train =
        RunDogsVsCats({"train", "--config", Path("tiny.textproto"), "--data", TinyImages(),
                       "--output", Path("run"), "--set", "train.log_every_steps=4"});
    ASSERT_EQ(train.exit_code, 0) << train.err;
    train_output_ = train.out;
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string Path(const std::string& name) { return folder_->File(name); }
  static std::string Text(const std::string& path) { return ReadFileText(path, 1 << 20).value(); }

  static TempDir* folder_;
  static std::string train_output_;
};
TempDir* VerbsTest::folder_ = nullptr;
std::string VerbsTest::train_output_;

TEST_F(VerbsTest, TrainReportsAndLeavesARunDirectory) {
  for (const char* said :
       {"ringtail ", "oneDNN 2.", "compute", "24 cat, 24 dog", "40 to train on, 8 to validate",
        "parameters", "MFLOP per image", "step 4/20", "step 20/20", "validation: loss",
        "trained for 20 of 20 steps"}) {
    EXPECT_THAT(train_output_, HasSubstr(said));
  }
  for (const char* file :
       {"config.textproto", "metrics.jsonl", "final.safetensors", "checkpoints/best.safetensors",
        "checkpoints/step-00000020.safetensors"}) {
    EXPECT_TRUE(std::filesystem::exists(Path("run/") + file)) << file;
  }
  EXPECT_TRUE(ParseRunConfig(Text(Path("run/config.textproto")), "config", {}).ok());
}

// It includes the values of --set. (One fixed algorithm, because a cache that cannot be written has
// no memory.)
TEST_F(VerbsTest, TheConfigThatARunLeavesReproducesIt) {
  const ProcessResult first = RunDogsVsCats(
      {"train", "--config", Path("tiny.textproto"), "--data", TinyImages(), "--output",
       Path("first"), "--threads", "1", "--set", "net.convolution=ONEDNN", "--set", "train.seed=5",
       "--set", "train.epochs=2", "--set", "optim.adamw={}"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const ProcessResult again = RunDogsVsCats({"train", "--config", Path("first/config.textproto"),
                                             "--output", Path("again"), "--threads", "1"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(Text(Path("again/final.safetensors")), Text(Path("first/final.safetensors")));
  EXPECT_EQ(Text(Path("again/config.textproto")), Text(Path("first/config.textproto")));
}

// Also those for the larger images at the end, so that a run resumes to the same bits whenever it
// is stopped.
TEST_F(VerbsTest, AlgorithmsOfAllImageSizesAreKnownBeforeTheFirstStep) {
  std::vector<std::string> arguments = {"train",      "--config", Path("tiny.textproto"), "--data",
                                        TinyImages(), "--output", Path("sizes")};
  for (const char* set :
       {"net.convolution=FASTEST", "net.layer[conv1].convolution.out_channels=32",
        "net.layer[conv2].convolution.stride=1", "net.layer[conv2].convolution.out_channels=32",
        "train.checkpoint_every_steps=1", "train.keep_checkpoints=20"}) {
    arguments.insert(arguments.end(), {"--set", set});
  }
  const ProcessResult train = RunDogsVsCats(arguments);
  ASSERT_EQ(train.exit_code, 0) << train.err;
  const auto algorithms = [](int step) {
    const std::string name = fmt::format("sizes/checkpoints/step-{:08}.safetensors", step);
    return SafetensorsFile::Read(Path(name)).value().metadata().at("convolution_algorithms");
  };
  if (SelectedKernelIsa() != KernelIsa::kBaseline) {  // which has no Winograd to choose
    EXPECT_THAT(algorithms(1), HasSubstr("winograd"));
  }
  EXPECT_EQ(algorithms(1), algorithms(20));
}

TEST_F(VerbsTest, AnAccuracyOfZeroOverridesThatOfTheConfig) {
  const ProcessResult result = RunDogsVsCats(
      {"train", "--config", Path("tiny.textproto"), "--data", TinyImages(), "--output",
       Path("whole"), "--set", "train.until_accuracy=0.01", "--until-accuracy", "0"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("trained for 20 of 20 steps"));
}

TEST_F(VerbsTest, TrainRefusesAnExistingRun) {
  const ProcessResult again = RunDogsVsCats({"train", "--config", Path("tiny.textproto"), "--data",
                                             TinyImages(), "--output", Path("run")});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.err, HasSubstr("--resume"));
}

TEST_F(VerbsTest, AFinishedRunResumesToTheSameEnd) {
  const auto before = ReadTensors(Path("run/final.safetensors"));
  const ProcessResult resumed = RunDogsVsCats({"train", "--resume", Path("run")});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(ReadTensors(Path("run/final.safetensors")), before);
}

TEST_F(VerbsTest, ResumingFromACheckpointStaysInItsRun) {
  const ProcessResult resumed =
      RunDogsVsCats({"train", "--resume", Path("run/checkpoints/step-00000020.safetensors")});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr(Path("run") + "/final.safetensors"));
}

TEST_F(VerbsTest, ResumingElsewhereDoesNotTouchAnotherRun) {
  const std::vector<std::string> other = {"train",        "--config",   Path("tiny.textproto"),
                                          "--data",       TinyImages(), "--set",
                                          "train.seed=2", "--output",   Path("other")};
  ASSERT_EQ(RunDogsVsCats(other).exit_code, 0);
  const std::string config = Text(Path("other/config.textproto"));
  const ProcessResult refused =
      RunDogsVsCats({"train", "--resume", Path("run"), "--output", Path("other")});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("holds another run"));
  EXPECT_EQ(Text(Path("other/config.textproto")), config);
}

TEST_F(VerbsTest, AResumedRunKeepsItsThreadsOrWarns) {
  const std::vector<std::string> first = {"train",     "--config",   Path("tiny.textproto"),
                                          "--data",    TinyImages(), "--output",
                                          Path("one"), "--threads",  "1"};
  const ProcessResult alone = RunDogsVsCats(first);
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_THAT(alone.out, HasSubstr(" 1 compute"));
  const ProcessResult same = RunDogsVsCats({"train", "--resume", Path("one")});
  EXPECT_THAT(same.out, HasSubstr(" 1 compute"));
  EXPECT_THAT(same.err, testing::Not(HasSubstr("the run began with")));
  const ProcessResult other = RunDogsVsCats({"train", "--resume", Path("one"), "--threads", "3"});
  EXPECT_THAT(other.out, HasSubstr(" 3 compute"));
  EXPECT_THAT(other.err, HasSubstr("the run began with 1 thread, "));
}

// At this size the last layers have one value per image and channel.
TEST_F(VerbsTest, BatchNormOfSinglePixelsTrains) {
  const ProcessResult result = RunDogsVsCats(
      {"train", "--config", std::string(RT_SOURCE_DIR) + "/configs/quickstart.textproto", "--data",
       TinyImages(), "--output", Path("small"), "--set", "data.image_size=8", "--set",
       "train.batch=16", "--set", "train.epochs=1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(VerbsTest, EvaluateAgreesWithTheLastEvaluationOfTraining) {
  const ProcessResult result =
      RunDogsVsCats({"evaluate", "--checkpoint", Path("run/final.safetensors"), "--data",
                     TinyImages(), "--part", "validation", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["images"], 8);
  const std::string metrics = Text(Path("run/metrics.jsonl"));
  const size_t at = metrics.rfind("{\"kind\":\"evaluation\"");
  ASSERT_NE(at, std::string::npos);
  const auto last = nlohmann::json::parse(metrics.substr(at, metrics.find('\n', at) - at));
  EXPECT_EQ(json["accuracy"], last["accuracy"]);
  EXPECT_EQ(json["loss"], last["loss"]);
}

TEST_F(VerbsTest, EvaluateReadsCheckpointsAndPackedFiles) {
  const std::string packed = Path("images.packed");
  const ProcessResult prepare = RunDogsVsCats({"prepare", "--data", TinyImages(), "--out", packed});
  ASSERT_EQ(prepare.exit_code, 0) << prepare.err;
  EXPECT_THAT(prepare.out, HasSubstr("48 images"));
  const auto evaluate = [&](const std::string& data) {
    return RunDogsVsCats({"evaluate", "--checkpoint",
                          Path("run/checkpoints/step-00000020.safetensors"), "--data", data,
                          "--part", "all"});
  };
  const ProcessResult from_folder = evaluate(TinyImages()), from_file = evaluate(packed);
  ASSERT_EQ(from_file.exit_code, 0) << from_file.err;
  const auto score = [](const std::string& out) { return out.substr(out.find('\n')); };
  EXPECT_EQ(score(from_folder.out), score(from_file.out));
}

// The run trained on 40 of the 48 images.
TEST_F(VerbsTest, EvaluateCountsImagesUnseenInTraining) {
  const auto evaluate = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"evaluate", "--checkpoint", Path("run/final.safetensors")});
    return RunDogsVsCats(std::move(more));
  };
  EXPECT_THAT(evaluate({}).out, HasSubstr(" of 8 images, validation), loss "));
  const auto part = [&](std::vector<std::string> more) {
    more.push_back("--json");
    const auto json = nlohmann::json::parse(evaluate(std::move(more)).out);
    return std::pair(json["part"].get<std::string>(), json["images"].get<int>());
  };
  EXPECT_EQ(part({}), std::pair(std::string("validation"), 8));
  EXPECT_EQ(part({"--data", TinyImages() + "/."}), std::pair(std::string("validation"), 8));
  EXPECT_EQ(part({"--part", "train"}), std::pair(std::string("train"), 40));
  EXPECT_EQ(part({"--part", "all"}), std::pair(std::string("all"), 48));
  ASSERT_EQ(RunDogsVsCats({"synthesize", "--out", Path("others"), "--images", "6"}).exit_code, 0);
  EXPECT_EQ(part({"--data", Path("others")}), std::pair(std::string("all"), 6));
}

TEST_F(VerbsTest, EvaluateNamesAnEmptyPart) {
  const ProcessResult none =
      RunDogsVsCats({"evaluate", "--checkpoint", Path("run/final.safetensors"), "--set",
                     "data.split.validation_fraction=0"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr(TinyImages() + ": no images in the part 'validation'"));
}

TEST_F(VerbsTest, PredictNamesAClassForEveryImage) {
  const ProcessResult table =
      RunDogsVsCats({"predict", "--checkpoint", Path("run/final.safetensors"), "--images",
                     TinyImages() + "/train/cat.0.jpg", TinyImages() + "/train/dog.0.jpg"});
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_EQ(std::count(table.out.begin(), table.out.end(), '\n'), 2);
  EXPECT_THAT(table.out, testing::ContainsRegex("dog.0.jpg +(cat|dog) +[0-9.]+ %"));
}

TEST_F(VerbsTest, PredictWritesASubmission) {
  const ProcessResult draw = RunDogsVsCats(
      {"synthesize", "--out", Path("test"), "--images", "2", "--test-images", "12", "--seed", "9"});
  ASSERT_EQ(draw.exit_code, 0) << draw.err;
  const ProcessResult predict =
      RunDogsVsCats({"predict", "--checkpoint", Path("run/final.safetensors"), "--images",
                     Path("test/test1"), "--csv", Path("submission.csv"), "--submission"});
  ASSERT_EQ(predict.exit_code, 0) << predict.err;
  std::ifstream csv(Path("submission.csv"));
  std::string line;
  std::getline(csv, line);
  EXPECT_EQ(line, "id,label");
  for (int id = 1; id <= 12; ++id) {
    std::getline(csv, line);
    EXPECT_EQ(line.rfind(std::to_string(id) + ",0.", 0), 0U) << line;
  }
}

TEST_F(VerbsTest, SummaryCountsParameters) {
  const ProcessResult result =
      RunDogsVsCats({"summary", "--config", Path("tiny.textproto"), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  // conv1 3*8*9+8, bn1 16, conv2 8*16*9+16, fc 32+2
  EXPECT_EQ(json["parameters"], 224 + 16 + 1168 + 34);
  EXPECT_EQ(json["layers"][0]["name"], "conv1");
  EXPECT_THAT(RunDogsVsCats({"summary", "--config", Path("tiny.textproto")}).out,
              HasSubstr("1442 parameters"));
}

// Networks and batches far beyond this machine: it allocates and measures nothing.
TEST_F(VerbsTest, SummaryWorksForNetworksThatDoNotFit) {
  constexpr long kMostRssKib = 400 * 1024;
  constexpr double kTib = static_cast<double>(int64_t{1} << 40);
  const std::string vgg = RT_SOURCE_DIR "/configs/vgg11_bn.textproto";
  const std::string deep = Path("deep.textproto");
  std::ofstream(deep) << R"(net {
    layer { name: "stages" repeat { count: 36 layer { name: "s" residual_stage {
      block: BOTTLENECK blocks: 25 channels: 256 } } } }
    layer { name: "pool" global_average_pool {} }
    layer { name: "fc" linear { out_features: 2 } }
    layer { name: "loss" softmax_cross_entropy {} } })";
  const struct {
    std::string config, batch;
    double least_bytes;
  } cases[] = {{vgg, "1024", 0}, {vgg, "8192", kTib / 16}, {deep, "4096", kTib}};
  const std::string cache = Path("empty_cache");
  for (const auto& c : cases) {
    const ProcessResult result =
        RunProcess(DogsVsCats({"summary", "--config", c.config, "--batch", c.batch, "--json"}),
                   {"XDG_CACHE_HOME=" + cache});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto json = nlohmann::json::parse(result.out);
    EXPECT_GT(json["memory_bytes"], c.least_bytes);
    EXPECT_GT(json["parameters"], 1e6);
    EXPECT_LT(result.max_rss_kib, kMostRssKib) << c.config;
  }
  EXPECT_FALSE(std::filesystem::exists(cache)) << "a convolution was measured";
}

TEST_F(VerbsTest, TimeReportsTheKeysOfTheContract) {
  const ProcessResult result =
      RunDogsVsCats({"time", "--config", Path("tiny.textproto"), "--batch", "2", "--image-size",
                     "32", "--iterations", "3", "--threads", "1", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_GT(json["step_ms"], 0);
  EXPECT_GT(json["images_per_s"], 0);
  EXPECT_GT(json["peak_memory_mib"], 1);
  EXPECT_EQ(json["threads"], 1);
  double share = 0;
  for (const auto& layer : json["layers"]) {
    EXPECT_GE(layer["forward_ms"], 0);
    share += layer["share"].get<double>();
  }
  EXPECT_NEAR(share, 1, 1e-6);
}

TEST_F(VerbsTest, PlanSaysOfEveryPartOfAStepHowLongItTakes) {
  const ProcessResult planned = RunDogsVsCats(
      {"plan", "--config", Path("tiny.textproto"), "--measure", "--threads", "1", "--hosts", "4",
       "--rate", "1mbit", "--set", "dist.sync_batch_norm=true", "--json"});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const auto dense = nlohmann::json::parse(planned.out)["dense"];
  double sum = 0;
  for (const auto& part : dense["seconds"]) sum += part.get<double>();
  EXPECT_NEAR(sum, dense["round_s"].get<double>(), 1e-9);
}

// Facts that were measured once answer questions about any cluster.
TEST_F(VerbsTest, PlanMeasuresAndAnswersFromFacts) {
  const ProcessResult measured = RunDogsVsCats(
      {"plan", "--config", Path("tiny.textproto"), "--measure", "--threads", "1", "--save",
       Path("facts.textproto"), "--hosts", "4", "--rate", "1mbit", "--periods", "1,4", "--json"});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  const auto slow = nlohmann::json::parse(measured.out);
  EXPECT_EQ(slow["hosts"], 4);
  EXPECT_LT(slow["dense"]["speed_up"], 1);
  EXPECT_THAT(slow["warning"].get<std::string>(), HasSubstr("times one host alone"));
  EXPECT_GE(slow["best"][0]["speed_up"], 1);
  ASSERT_GE(slow["asked"].size(), 3);  // of the first scheme: every step, blocking, overlapped
  EXPECT_EQ(slow["asked"][0]["round_s"], slow["dense"]["round_s"]);
  EXPECT_EQ(slow["asked"][2]["period"], 4);
  EXPECT_TRUE(slow["asked"][2]["overlap"].get<bool>());

  const ProcessResult dedicated = RunDogsVsCats(
      {"plan", "--config", Path("tiny.textproto"), "--from", Path("facts.textproto"),
       "--dedicated-cores", "--cpu-s-per-gb", "1000", "--schemes", "dense", "--json"});
  ASSERT_EQ(dedicated.exit_code, 0) << dedicated.err;
  EXPECT_NEAR(nlohmann::json::parse(dedicated.out)["dense"]["seconds"]["contention"].get<double>(),
              0, 1e-12);

  const ProcessResult asked =
      RunDogsVsCats({"plan", "--config", Path("tiny.textproto"), "--from", Path("facts.textproto"),
                     "--hosts", "1024", "--cores", "32", "--rate", "10gbit", "--batch", "65536"});
  ASSERT_EQ(asked.exit_code, 0) << asked.err;
  for (const char* said :
       {"tiny: 1024 hosts of 32 cores", "one host alone", "1024 hosts, dense",
        "taken to be 32 times as fast", "recommended: ", "--set 'train.batch="}) {
    EXPECT_THAT(asked.out, HasSubstr(said));
  }
  const ProcessResult several = RunDogsVsCats({"plan", "--config", Path("tiny.textproto"), "--from",
                                               Path("facts.textproto"), "--hosts", "2..3"});
  EXPECT_THAT(several.out, HasSubstr("tiny: 2 hosts"));
  EXPECT_THAT(several.out, HasSubstr("tiny: 3 hosts"));
}

TEST_F(VerbsTest, PlanRefusesFactsThatAreWrong) {
  std::ofstream(Path("wrong.textproto")) << "cores: -1";
  const ProcessResult wrong = RunDogsVsCats({"plan", "--from", Path("wrong.textproto")});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("wrong.textproto:1:"));
  EXPECT_THAT(wrong.err, HasSubstr("cores is -1"));
}

TEST_F(VerbsTest, WrongUseIsOneSentenceAndExitCodeTwo) {
  const std::vector<std::vector<std::string>> wrong = {
      {"tarin"},
      {"train", "--no-such-flag"},
      {"train", "--config", Path("none.textproto"), "--data", TinyImages()},
      {"train", "--config", Path("tiny.textproto")},
      {"train", "--config", Path("tiny.textproto"), "--set", "train.bach=3"},
      {"time", "--config", Path("tiny.textproto"), "--batch", "0"},
      {"plan"},
      {"plan", "--measure", "--hosts", "0"},
      {"plan", "--measure", "--rate", "fast"},
      {"replay", "--steps", "1"}};
  for (const auto& arguments : wrong) {
    const ProcessResult result = RunDogsVsCats(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  EXPECT_THAT(RunDogsVsCats({"tarin"}).err, HasSubstr("did you mean 'train'?"));
}

TEST_F(VerbsTest, HelpAndVersion) {
  const ProcessResult help = RunDogsVsCats({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const VerbHelp& verb : AllVerbs()) {
    EXPECT_THAT(help.out, HasSubstr("\n  " + verb.name + " "));
    EXPECT_EQ(RunDogsVsCats({verb.name, "--help"}).exit_code, 0);
  }
  EXPECT_THAT(RunDogsVsCats({"summary", "--help"}).out, HasSubstr("default: dogs_vs_cats)"));
  EXPECT_THAT(RunDogsVsCats({"train", "--help"}).out, HasSubstr("this rank's share of the"));
  EXPECT_THAT(RunDogsVsCats({"--version"}).out, HasSubstr("ringtail "));
}

}  // namespace
}  // namespace ringtail
