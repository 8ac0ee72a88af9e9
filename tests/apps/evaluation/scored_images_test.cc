// Scored images: which count, and their way through a CSV file.
#include "apps/evaluation/scored_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "apps/csv.h"
#include "tests/apps/evaluation/four_images.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ScoredImagesTest : public testing::Test {
 protected:
  void Open(const std::vector<std::string>& files) {
    for (const std::string& name : files) {
      std::filesystem::create_directories(std::filesystem::path(folder_.File(name)).parent_path());
      std::ofstream(folder_.File(name)) << "x";
    }
    DataConfig config;
    config.set_path(folder_.path());
    dataset_ = Dataset::Open(config).value();
  }
  TempDir folder_;
  std::unique_ptr<Dataset> dataset_;
};

TEST_F(ScoredImagesTest, BrokenImagesDoNotCount) {
  Open({"a/0.jpg", "a/1.jpg", "b/0.jpg"});
  ImageLogits logits{.classes = 2, .values = {0, 1, 2, 2, 0, 0}, .usable = {true, true, false}};
  const ScoredImages scored = MakeScoredImages(logits, *dataset_, {0, 1, 2});
  EXPECT_THAT(scored.files, ElementsAre("a/0.jpg", "a/1.jpg"));
  EXPECT_THAT(scored.predicted, ElementsAre(1, 0));  // of equal ones the first
  EXPECT_NEAR(scored.row(0)[1], 1 / (1 + std::exp(-1.0)), 1e-15);
  EXPECT_NEAR(scored.losses[1], std::log(2.0), 1e-15);
}

TEST_F(ScoredImagesTest, OutputsWithoutAClassHaveANumber) {
  Open({"a/0.jpg", "b/0.jpg"});
  ImageLogits logits{.classes = 3, .values = {0, 0, 5, 0, 1, 0}, .usable = {true, true}};
  const ScoredImages scored = MakeScoredImages(logits, *dataset_, {0, 1});
  EXPECT_THAT(scored.class_names, ElementsAre("a", "b", "class 2"));
  EXPECT_THAT(scored.predicted, ElementsAre(2, 1));
}

TEST_F(ScoredImagesTest, ThroughCsvToTheSameBits) {
  ScoredImages scored = FourImages();
  scored.class_names = {"a,\"b\"", "label", "line\nend"};
  scored.files[0] = "x\r\n,\"";
  scored.probabilities[0] = 0.1 + 0.2;
  scored.probabilities[1] = 1e-300;
  scored.losses[2] = 5e-324;
  const ScoredImages read = ParseScoredImages(ScoredImagesCsv(scored)).value();
  EXPECT_EQ(read.class_names, scored.class_names);
  EXPECT_EQ(read.files, scored.files);
  EXPECT_EQ(read.labels, scored.labels);
  EXPECT_EQ(read.predicted, scored.predicted);
  EXPECT_EQ(read.probabilities, scored.probabilities);
  EXPECT_EQ(read.losses, scored.losses);
}

TEST_F(ScoredImagesTest, AnythingElseIsRefused) {
  const std::string heading = "file,label,predicted,loss,probability_a,probability_b\n";
  EXPECT_EQ(ParseScoredImages(heading + "f,a,b,1,0.5,0.5\n").value().images(), 1);
  for (const auto& [text, reason] : std::vector<std::pair<std::string, std::string>>{
           {"", "is empty"},
           {"file,label\n", "the heading"},
           {heading + "f,a,b,1,0.5\n", "row 1: has 5 fields, not 6"},
           {heading + "f,c,b,1,0.5,0.5\n", "'c' is none of the classes"},
           {heading + "f,a,b,x,0.5,0.5\n", "'x' is not a number"},
           {heading + "f,a,b,1,0.5,2\n", "'2' is not a probability"},
           {heading + "f,a,b,1,nan,0.5\n", "'nan' is not a probability"},
           {heading + "\"f,a,b,1,0.5,0.5\n", "a quote is not closed"}}) {
    EXPECT_THAT(ParseScoredImages(text).status().message(), HasSubstr(reason)) << text;
  }
}

TEST(CsvTest, ReadsWhatRfc4180Allows) {
  const auto lines = ParseCsv("a,\"b,\"\"c\"\r\n\r\n\"x\ny\",\n").value();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0], ElementsAre("a", "b,\"c"));
  EXPECT_THAT(lines[1], ElementsAre(""));
  EXPECT_THAT(lines[2], ElementsAre("x\ny", ""));
  EXPECT_FALSE(ParseCsv("a,b\"c\n").ok());
  EXPECT_FALSE(ParseCsv("\"a\"b\n").ok());
}

}  // namespace
}  // namespace ringtail
