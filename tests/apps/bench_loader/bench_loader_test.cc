#include "apps/bench_loader/bench_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <opencv2/imgcodecs.hpp>
#include <string>

#include "tests/testing/process.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

TEST(BenchLoaderTest, MeasuresEachNumberOfWorkers) {
  const TempDir folder;
  for (int i = 0; i < 6; ++i) {
    const std::string name = (i % 2 == 0 ? "cat." : "dog.") + std::to_string(i) + ".jpg";
    ASSERT_TRUE(cv::imwrite(folder.File(name), cv::Mat(40, 50, CV_8UC3, cv::Scalar(i, 50, 90))));
  }
  LoaderBenchmarkOptions options;
  options.data.set_path(folder.path());
  options.data.set_image_size(16);
  options.workers = {1, 3};
  options.batch = 2;
  options.images = 8;
  options.rounds = 2;
  const LoaderBenchmark result = BenchmarkLoader(options).value();
  const auto json = nlohmann::json::parse(LoaderBenchmarkJson(result));
  EXPECT_EQ(json["image_size"], 16);
  EXPECT_EQ(json["bad_images"], 0);
  ASSERT_EQ(json["rates"].size(), 2U);
  EXPECT_EQ(json["rates"][1]["workers"], 3);
  for (const auto& rate : json["rates"]) {
    EXPECT_GT(rate["images_per_s"], 0);
    EXPECT_LE(rate["lowest_images_per_s"], rate["images_per_s"]);
    EXPECT_LE(rate["images_per_s"], rate["highest_images_per_s"]);
    EXPECT_LE(rate["batch_ms_p50"], rate["batch_ms_p99"]);
  }
  EXPECT_THAT(LoaderBenchmarkTable(result), testing::HasSubstr("3 cat, 3 dog"));
}

TEST(BenchLoaderTest, SaysWhatIsMissing) {
  LoaderBenchmarkOptions options;
  options.data.set_path("/nowhere/at/all");
  EXPECT_FALSE(BenchmarkLoader(options).ok());
  options.workers.clear();
  EXPECT_THAT(BenchmarkLoader(options).status().message(),
              testing::HasSubstr("at least one number of workers"));
}

TEST(BenchLoaderTest, NanIsNoShareOfAnImage) {
  const ProcessResult result = RunProcess(
      {RT_BINARY_DIR "/bin/bench_loader", "--data", "/nowhere/at/all", "--min-area", "nan"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, testing::HasSubstr("--min-area: nan is not a number"));
}

}  // namespace
}  // namespace ringtail
