// What is made of a trained network for people and other programs: files of `evaluate`, a report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/csv.h"
#include "apps/evaluation/scored_images.h"
#include "apps/report/tensorboard_events.h"
#include "core/storage/file.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::HasSubstr;
using testing::Not;

class ResultsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir;
    std::ofstream(Path("tiny.textproto")) << TinyConfigText();
    const ProcessResult train = RunDogsVsCats({"train", "--config", Path("tiny.textproto"),
                                               "--data", TinyImages(), "--output", Path("run")});
    ASSERT_EQ(train.exit_code, 0) << train.err;
    train_output_ = train.out;
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string Path(const std::string& name) { return folder_->File(name); }
  static std::string Text(const std::string& path) { return ReadFileText(path, 1 << 24).value(); }

  static TempDir* folder_;
  static std::string train_output_;
};
TempDir* ResultsTest::folder_ = nullptr;
std::string ResultsTest::train_output_;

TEST_F(ResultsTest, EvaluateWritesRowsAndASummary) {
  const ProcessResult result =
      RunDogsVsCats({"evaluate", "--checkpoint", Path("run"), "--part", "all", "--csv",
                     Path("rows.csv"), "--json", Path("summary.json")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("precision    recall  f1-score   support"));
  const ScoredImages scored = ParseScoredImages(Text(Path("rows.csv"))).value();
  EXPECT_EQ(scored.images(), 48);
  const auto json = nlohmann::json::parse(Text(Path("summary.json")));
  EXPECT_EQ(json["images"], 48);
  EXPECT_EQ(json["classification_report"]["cat"]["support"], 24);
  int64_t right = 0;
  for (int64_t i = 0; i < 48; ++i) right += scored.labels[i] == scored.predicted[i] ? 1 : 0;
  EXPECT_EQ(json["correct"], right);
}

TEST_F(ResultsTest, RowsOnStandardOutputStandAlone) {
  const ProcessResult result =
      RunDogsVsCats({"evaluate", "--checkpoint", Path("run/final.safetensors"), "--csv", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(ParseScoredImages(result.out).value().images(), 8);
  EXPECT_THAT(result.err, HasSubstr("accuracy "));
  const ProcessResult both = RunDogsVsCats(
      {"evaluate", "--checkpoint", Path("run/final.safetensors"), "--csv", "-", "--json"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("both write to standard output"));
}

TEST_F(ResultsTest, TrainLeavesAReport) {
  EXPECT_THAT(train_output_, HasSubstr("report in " + Path("run/report.html")));
  const std::string html = Text(Path("run/report.html"));
  for (const char* part : {"<h1>Run run</h1>", "<h2>Curves</h2>", "8 images (validation",
                           "data:image/jpeg;base64,/9j/", "24 cat, 24 dog", "out_channels"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
  EXPECT_LE(std::ssize(html), 2'000'000);
}

// Nothing changes, so the first evaluation stays the best.
TEST_F(ResultsTest, ARunThatIsOutOfPatienceLeavesAReport) {
  std::vector<std::string> arguments = {"train",      "--config", Path("tiny.textproto"), "--data",
                                        TinyImages(), "--output", Path("impatient")};
  for (const char* set : {"train.patience=1", "train.freeze=all-but-head",
                          "train.phase=", "optim.learning_rate=1e-30", "optim.ema_decay=0"}) {
    arguments.insert(arguments.end(), {"--set", set});
  }
  const ProcessResult train = RunDogsVsCats(arguments);
  ASSERT_EQ(train.exit_code, 0) << train.err;
  EXPECT_THAT(train.out, HasSubstr("trained for 10 of 20 steps (no better validation accuracy"));
  ASSERT_THAT(train.out, HasSubstr("report in " + Path("impatient/report.html")));
  EXPECT_THAT(Text(Path("impatient/report.html")), HasSubstr("8 images (validation"));
}

// Two images for each of the 8 of validation, all of which are mistakes or guesses.
TEST_F(ResultsTest, TheReportShowsGradCam) {
  const std::string html = Text(Path("run/report.html"));
  const size_t training = html.find("<h2>Training images</h2>");
  ASSERT_NE(training, std::string::npos);
  const std::string galleries = html.substr(0, training);
  const auto count = [&](const std::string& part) {
    int found = 0;
    for (size_t at = galleries.find(part); at != std::string::npos;
         at = galleries.find(part, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count("<img "), 16);
  EXPECT_EQ(count("alt=\"Grad-CAM: "), 8);
  EXPECT_THAT(galleries, HasSubstr("at layer conv2."));
  EXPECT_THAT(galleries, testing::ContainsRegex(
                             "what spoke most for (cat|dog) is at the [a-z ]+ of the image"));
}

TEST_F(ResultsTest, PredictWritesGradCam) {
  const std::string images = TinyImages() + "/train/";
  std::filesystem::create_directories(Path("others"));
  std::filesystem::copy_file(images + "dog.1.jpg", Path("others/cat.0.jpg"));
  std::ofstream(Path("others/broken.jpg")) << "no image";
  const ProcessResult result =
      RunDogsVsCats({"predict", "--checkpoint", Path("run"), images + "cat.0.jpg", Path("others"),
                     "--grad-cam", Path("maps/of")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(Path("maps/of")))
    files.push_back(entry.path().filename().string());
  EXPECT_THAT(files, testing::UnorderedElementsAre("cat.0.grad_cam.jpg", "cat.0-2.grad_cam.jpg",
                                                   "grad_cam.csv"));
  EXPECT_THAT(Text(Path("maps/of/cat.0.grad_cam.jpg")), testing::StartsWith("\xFF\xD8\xFF"));
  const auto rows = ParseCsv(Text(Path("maps/of/grad_cam.csv"))).value();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_THAT(rows[0],
              testing::ElementsAre("image", "overlay", "label", "layer", "height", "width", "map"));
  for (size_t i = 1; i < 3; ++i) {
    EXPECT_THAT(rows[i][2], testing::AnyOf("cat", "dog"));
    EXPECT_EQ(rows[i][3], "conv2");
    const auto spaces = std::count(rows[i][6].begin(), rows[i][6].end(), ' ');
    EXPECT_EQ(spaces + 1, std::stoi(rows[i][4]) * std::stoi(rows[i][5]));
  }
  EXPECT_NE(rows[1][6], rows[2][6]);
}

TEST_F(ResultsTest, GradCamNeedsALayerWithAMap) {
  const auto error = [&](const std::string& layer) {
    const ProcessResult result =
        RunDogsVsCats({"predict", "--checkpoint", Path("run"), TinyImages() + "/train/cat.0.jpg",
                       "--grad-cam", Path("none"), "--grad-cam-layer", layer});
    EXPECT_EQ(result.exit_code, 2) << layer;
    return result.err;
  };
  EXPECT_THAT(error("fc"), HasSubstr("the output of layer 'fc' is 2x2; a feature map has more"));
  EXPECT_THAT(error("conv9"), HasSubstr("'conv9' is no layer with an output of its own"));
  EXPECT_FALSE(std::filesystem::exists(Path("none")));
  const ProcessResult alone = RunDogsVsCats(
      {"predict", "--checkpoint", Path("run"), "--grad-cam-layer", "conv2", TinyImages()});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.err, HasSubstr("--grad-cam"));
}

TEST_F(ResultsTest, TrainLeavesItsCurvesForOtherPrograms) {
  EXPECT_THAT(Text(Path("run/results.csv")), HasSubstr("\n4,20,"));  // the last of 4 epochs
  for (const char* part : {"train", "validation"}) {
    const std::string events = Path("run/tensorboard/") + part;
    const auto names = EventFileNames(events);
    ASSERT_EQ(names.size(), 1U) << part;
    EXPECT_THAT(Text(events + "/" + names[0]), HasSubstr("brain.Event:2"));
  }
}

TEST_F(ResultsTest, ReportWithoutImages) {
  const ProcessResult result = RunDogsVsCats(
      {"report", Path("run/"), "--no-images", "--data", TinyImages(), "--out", Path("r.html")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string html = Text(Path("r.html"));
  EXPECT_THAT(html, HasSubstr("<h1>Run run</h1>"));
  EXPECT_THAT(html, Not(HasSubstr("<img")));
}

// What the folder knows of its network is not computed again.
TEST_F(ResultsTest, ReportTakesTheEvaluationOfTheRun) {
  std::filesystem::copy(Path("run"), Path("moved"), std::filesystem::copy_options::recursive);
  std::string rows = Text(Path("moved/evaluation.csv"));
  const size_t at = rows.find('\n') + 1;
  rows.replace(at, rows.find(',', at) - at, "a marked name.jpg");
  std::ofstream(Path("moved/evaluation.csv")) << rows;
  const ProcessResult result = RunDogsVsCats({"report", Path("moved"), "--out", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("a marked name.jpg"));
}

TEST_F(ResultsTest, ExportWritesOnnxAndSaysHowToUseIt) {
  const ProcessResult result = RunDogsVsCats(
      {"export", "--checkpoint", Path("run"), "--onnx", Path("net.onnx"), "--image-size", "32"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("images N x 3 x 32 x 32"));
  EXPECT_THAT(result.out, HasSubstr("readNetFromONNX(\"" + Path("net.onnx")));
  EXPECT_THAT(Text(Path("net.onnx")), HasSubstr("[\"cat\",\"dog\"]"));
}

TEST_F(ResultsTest, ReportNeedsARun) {
  const ProcessResult result = RunDogsVsCats({"report", Path("nothing")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("is not a folder; give that of a run"));
}

}  // namespace
}  // namespace ringtail
