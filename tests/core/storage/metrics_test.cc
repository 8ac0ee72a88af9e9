#include "core/storage/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <vector>

#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MetricsTest : public ::testing::Test {
 protected:
  std::string Text() const {
    std::ifstream stream(path_);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  void SetText(const std::string& text) const { std::ofstream(path_) << text; }

  // The steps of all lines; every line must be whole.
  std::vector<int64_t> Steps() const {
    std::vector<int64_t> steps;
    std::istringstream lines(Text());
    for (std::string line; std::getline(lines, line);) {
      steps.push_back(json::parse(line).at("step").get<int64_t>());
    }
    return steps;
  }

  // Opens the file like a run that resumes after `resumed_step`, and writes `steps`.
  void Run(int64_t resumed_step, const std::vector<int64_t>& steps) const {
    StatusOr<MetricsWriter> writer = MetricsWriter::Open(path_, resumed_step);
    ASSERT_TRUE(writer.ok()) << writer.status().ToString();
    for (const int64_t step : steps) {
      Metrics metrics;
      metrics.step = step;
      ASSERT_TRUE(writer->Write(metrics).ok());
    }
  }

  const TempDir dir_;
  const std::string path_ = dir_.File("metrics.jsonl");
};

TEST(MetricsJson, HasExactlyTheKeysOfTheContractInTheirOrder) {
  Metrics metrics;
  metrics.step = 120;
  metrics.epoch = 0.5;
  metrics.loss = 0.25;
  metrics.accuracy = 0.75;
  metrics.learning_rate = 0.125;
  metrics.batch = 64;
  metrics.noise_scale = 740;
  metrics.images_per_s = 1000;
  metrics.step_ms = 64;
  metrics.own = {.data_wait_ms = 0,
                 .forward_ms = 20,
                 .backward_ms = 40,
                 .exposed_comm_ms = 1.5,
                 .hidden_comm_ms = 2.5,
                 .comm_bytes = 1 << 30,
                 .encode_ms = 0.5};
  EXPECT_EQ(
      MetricsJson(metrics),
      R"({"kind":"step","step":120,"epoch":0.5,"loss":0.25,"accuracy":0.75,)"
      R"("learning_rate":0.125,"batch":64,"noise_scale":740.0,"images_per_s":1000.0,"step_ms":64.0,)"
      R"("data_wait_ms":0.0,"forward_ms":20.0,"backward_ms":40.0,"exposed_comm_ms":1.5,)"
      R"("hidden_comm_ms":2.5,"comm_bytes":1073741824,"encode_ms":0.5,"decode_ms":0.0,)"
      R"("ranks":null})");
}

TEST(MetricsJson, HasTheTimesOfEveryRank) {
  Metrics metrics;
  metrics.ranks = {{.batch = 43, .forward_ms = 20, .comm_bytes = 5}, {.forward_ms = 21}};
  const json ranks = json::parse(MetricsJson(metrics))["ranks"];
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0]["batch"], 43);
  EXPECT_TRUE(ranks[1]["batch"].is_null());
  EXPECT_EQ(ranks[0]["forward_ms"], 20.0);
  EXPECT_EQ(ranks[0]["comm_bytes"], 5);
  EXPECT_EQ(ranks[1]["forward_ms"], 21.0);
  EXPECT_TRUE(ranks[1]["backward_ms"].is_null());
}

TEST(MetricsJson, UnknownAndNonFiniteValuesAreNull) {
  Metrics metrics;
  metrics.kind = Metrics::Kind::kEvaluation;
  metrics.loss = std::numeric_limits<double>::infinity();
  const json line = json::parse(MetricsJson(metrics));
  EXPECT_EQ(line.size(), 19u);
  EXPECT_EQ(line["kind"], "evaluation");
  EXPECT_TRUE(line["loss"].is_null());
  EXPECT_TRUE(line["accuracy"].is_null());
  EXPECT_TRUE(line["batch"].is_null());
  EXPECT_EQ(line["comm_bytes"], 0);
}

TEST(MetricsJson, APredictionHasItsTermsInTheirOrder) {
  Metrics metrics;
  metrics.kind = Metrics::Kind::kPrediction;
  metrics.step = 55;
  metrics.compared_steps = 50;
  metrics.image_size = 64;
  metrics.terms = {{.name = "forward", .predicted_ms = 2, .measured_ms = 2.5},
                   {.name = "data", .predicted_ms = 0, .measured_ms = kNoMetric}};
  EXPECT_EQ(MetricsJson(metrics), R"({"kind":"prediction","step":55,"steps":50,"image_size":64,)"
                                  R"("terms":{)"
                                  R"("forward":{"predicted_ms":2.0,"measured_ms":2.5},)"
                                  R"("data":{"predicted_ms":0.0,"measured_ms":null}}})");
}

TEST_F(MetricsTest, EveryLineEndsWithTheTime) {
  const auto now = [] { return std::chrono::system_clock::now().time_since_epoch(); };
  const double before = std::chrono::duration<double>(now()).count();
  Run(-1, {1});
  const double after = std::chrono::duration<double>(now()).count();
  const double time = json::parse(Text())["time"].get<double>();
  EXPECT_GE(time, before - 0.001);
  EXPECT_LE(time, after);
}

TEST(MetricsJson, NumbersReadBackTheSame) {
  Metrics metrics;
  metrics.loss = 0.1 + 0.2;
  metrics.learning_rate = 1e-300;
  const json line = json::parse(MetricsJson(metrics));
  EXPECT_EQ(line["loss"].get<double>(), metrics.loss);
  EXPECT_EQ(line["learning_rate"].get<double>(), metrics.learning_rate);
}

TEST_F(MetricsTest, WritesALinePerCall) {
  Run(-1, {1, 2, 3});
  EXPECT_THAT(Steps(), ElementsAre(1, 2, 3));
  EXPECT_TRUE(Text().ends_with("}\n"));
}

TEST_F(MetricsTest, LinesAreInTheFileAtOnce) {
  StatusOr<MetricsWriter> writer = MetricsWriter::Open(path_, -1);
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(Text(), "");
  ASSERT_TRUE(writer->Write({.step = 7}).ok());
  EXPECT_THAT(Steps(), ElementsAre(7)) << "a killed process must not lose it";
}

TEST_F(MetricsTest, ANewRunStartsAnEmptyFile) {
  Run(-1, {0, 1, 2});
  Run(-1, {1});
  EXPECT_THAT(Steps(), ElementsAre(1));
}

TEST_F(MetricsTest, AResumedRunDropsLinesBeyondItsStep) {
  Run(-1, {0, 1, 2, 3, 4});
  Run(2, {3, 4, 5});
  EXPECT_THAT(Steps(), ElementsAre(0, 1, 2, 3, 4, 5));
  Run(100, {});
  EXPECT_THAT(Steps(), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(MetricsTest, ATornLastLineIsCutAtEveryByte) {
  Run(-1, {1, 2});
  const std::string whole = Text();
  const size_t second = whole.find('\n') + 1;
  for (size_t length = second; length < whole.size(); ++length) {
    SetText(whole.substr(0, length));
    Run(9, {10});
    EXPECT_THAT(Steps(), ElementsAre(1, 10)) << "torn after " << length << " bytes";
  }
}

TEST_F(MetricsTest, ForeignLinesAreRemoved) {
  Run(-1, {1});
  const std::string line = Text();
  SetText(line + std::string(100, '\0') + "\n[1]\n{\"step\":\"x\"}\n{}\n\n" + line);
  Run(1, {2});
  EXPECT_THAT(Steps(), ElementsAre(1, 1, 2));
}

// A block lost in a power cut reads as zeros.
TEST_F(MetricsTest, LinesWithALostBlockAreRemoved) {
  Run(-1, {1, 2, 3});
  std::string text = Text();
  text.replace(text.find('\n') + 100, 50, 50, '\0');
  SetText(text);
  Run(9, {});
  EXPECT_THAT(Steps(), ElementsAre(1, 3));
}

// The kept part is longer than a block, and lines cross the ends of blocks; its end is cut in
// place.
TEST_F(MetricsTest, LongFilesAreRepairedLineByLine) {
  constexpr int64_t kSteps = 9000;  // 3.3 MB
  std::vector<int64_t> steps(kSteps);
  std::iota(steps.begin(), steps.end(), 1);
  Run(-1, steps);
  const auto inode = [&] {
    struct stat info = {};
    return stat(path_.c_str(), &info) == 0 ? info.st_ino : 0;
  };
  const auto before = inode();
  Run(8000, {});
  steps.resize(8000);
  EXPECT_EQ(Steps(), steps);
  EXPECT_EQ(inode(), before) << "only the end went, yet all was copied";
  const std::string text = Text();
  SetText("torn\n" + text);
  Run(7999, {});
  steps.resize(7999);
  EXPECT_EQ(Steps(), steps);
}

TEST_F(MetricsTest, OverlongLinesAreRemoved) {
  Run(-1, {1});
  const std::string line = Text();
  SetText(line + std::string(40 << 20, 'x') + "\n" + line);
  Run(1, {});
  EXPECT_THAT(Steps(), ElementsAre(1, 1));
}

TEST_F(MetricsTest, ErrorsNameThePath) {
  const auto missing = MetricsWriter::Open(dir_.File("none/metrics.jsonl"), -1);
  EXPECT_THAT(missing.status().message(), HasSubstr("none/metrics.jsonl"));
  const auto folder = MetricsWriter::Open(dir_.path(), 5);
  EXPECT_THAT(folder.status().message(), HasSubstr(dir_.path()));
}

}  // namespace
}  // namespace ringtail
