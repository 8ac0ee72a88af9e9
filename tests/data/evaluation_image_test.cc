// An image without a data set becomes the same bits as in a loader.
#include "data/evaluation_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <opencv2/core/utility.hpp>
#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <string>
#include <vector>

#include "data/decoding/opencv_settings.h"
#include "tests/data/small_loader.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

std::vector<std::byte> EncodePng(const Image& image) {
  const cv::Mat rgb(image.height, image.width, CV_8UC3, const_cast<uint8_t*>(image.pixels.data()));
  cv::Mat bgr;
  cv::cvtColor(rgb, bgr, cv::COLOR_RGB2BGR);
  std::vector<uint8_t> encoded;
  EXPECT_TRUE(cv::imencode(".png", bgr, encoded));
  const auto* first = reinterpret_cast<const std::byte*>(encoded.data());
  return {first, first + encoded.size()};
}

std::vector<float> Render(const EvaluationImage& image, bool flip) {
  std::vector<float> row(kRowFloats);
  image.Render(flip, row.data());
  return row;
}

// Row i of what a loader makes of all images of `dataset`.
std::vector<std::vector<float>> LoaderRows(const Dataset& dataset, const DataConfig& config,
                                           LoaderMode mode) {
  const auto loader = MakeLoader(dataset, config, Options(mode));
  std::vector<std::vector<float>> rows;
  while (true) {
    const LoadedBatch batch = loader->Next().value();
    if (batch.labels.empty()) return rows;
    for (int64_t row = 0; row < kBatch && batch.samples[row] >= 0; ++row) {
      const float* first = batch.images + row * kRowFloats;
      rows.emplace_back(first, first + kRowFloats);
    }
  }
}

// (The first test: the first image that is decoded would change the settings.)
TEST(EvaluationImage, LeavesOpenCvsSettingsAloneIfToldTo) {
  constexpr int kOfTheProgram = 2;
  cv::setNumThreads(kOfTheProgram);
  cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_WARNING);
  KeepOpenCvSettings();
  const Image pixels = DrawImage(50, 40);
  ASSERT_TRUE(EvaluationImage::Decode(EncodePng(pixels), Config(), kSize).ok());
  ASSERT_TRUE(EvaluationImage::FromPixels(ImageView(pixels), Config(), kSize).ok());
  EXPECT_EQ(cv::getNumThreads(), kOfTheProgram);
  EXPECT_EQ(cv::utils::logging::getLogLevel(), cv::utils::logging::LOG_LEVEL_WARNING);
}

// Of every orientation, and of sizes that the decoder shrinks and others.
TEST(EvaluationImage, HasTheBitsOfALoader) {
  auto dataset = MakeDataset();
  dataset->Add("cat.100.jpg", 0, EncodeJpeg(DrawImage(301, 407, 5), {.orientation = 6}));
  dataset->Add("cat.101.png", 0, EncodePng(DrawImage(333, 150, 6)));
  dataset->Add("cat.102.png", 0, EncodePng(DrawImage(20, 11, 7)));
  DataConfig config = Config();
  config.mutable_evaluation()->set_crop_fraction(0.8F);
  config.add_mean(100);
  for (const bool flip : {false, true}) {
    const auto rows =
        LoaderRows(*dataset, config, flip ? LoaderMode::kEvaluateFlipped : LoaderMode::kEvaluate);
    ASSERT_EQ(rows.size(), dataset->samples().size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto bytes = dataset->Read(static_cast<int64_t>(i)).value();
      const EvaluationImage image = EvaluationImage::Decode(bytes, config, kSize).value();
      EXPECT_EQ(Render(image, flip), rows[i]) << dataset->samples()[i].key;
    }
  }
}

TEST(EvaluationImage, OfPixelsHasTheBitsOfAPngFile) {
  for (const auto& [width, height] : {std::pair{333, 150}, {64, 64}, {20, 11}, {1, 70}}) {
    const Image pixels = DrawImage(width, height, 8);
    const auto file = EvaluationImage::Decode(EncodePng(pixels), Config(), kSize).value();
    const auto memory = EvaluationImage::FromPixels(ImageView(pixels), Config(), kSize).value();
    // The same pixels among others: rows with a gap.
    Image wider;
    wider.Reset(width + 5, height + 2);
    for (int32_t y = 0; y < height; ++y) {
      std::copy_n(pixels.Row(y), width * kChannels, wider.Row(y + 1) + 2 * kChannels);
    }
    const auto part =
        EvaluationImage::FromPixels(ImageView(wider, 2, 1, width, height), Config(), kSize).value();
    for (const bool flip : {false, true}) {
      EXPECT_EQ(Render(memory, flip), Render(file, flip)) << width << " x " << height;
      EXPECT_EQ(Render(part, flip), Render(file, flip)) << width << " x " << height;
    }
  }
}

TEST(EvaluationImage, RefusesWhatALoaderRefuses) {
  const std::vector<std::byte> text = Bytes("this is no image");
  EXPECT_FALSE(EvaluationImage::Decode(text, Config(), kSize).ok());
  DataConfig config = Config();
  config.mutable_bad_images()->set_max_side(50);
  const Image wide = DrawImage(51, 20);
  EXPECT_THAT(EvaluationImage::Decode(EncodePng(wide), config, kSize).status().message(),
              HasSubstr("max_side = 50"));
  EXPECT_THAT(EvaluationImage::FromPixels(ImageView(wide), config, kSize).status().message(),
              HasSubstr("is 51 x 20 pixels, more than data.bad_images.max_side = 50"));
}

}  // namespace
}  // namespace ringtail
