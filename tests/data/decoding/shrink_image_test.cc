// Shrunk images are smaller, upright, and look the same; all others are unchanged.
#include "data/decoding/shrink_image.h"

#include <gtest/gtest.h>

#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <span>
#include <string>

#include "tests/data/test_images.h"

namespace ringtail {
namespace {

constexpr int32_t kQuality = 95;

std::vector<std::byte> ToBytes(const std::vector<uchar>& chars) {
  const auto bytes = std::as_bytes(std::span(chars));
  return {bytes.begin(), bytes.end()};
}

// Left half red, right half blue, and a green stripe along the top (BGR).
cv::Mat Scene(int width, int height) {
  cv::Mat scene(height, width, CV_8UC3, cv::Scalar(0, 0, 255));
  scene(cv::Rect(width / 2, 0, width - width / 2, height)) = cv::Scalar(255, 0, 0);
  scene(cv::Rect(0, 0, width, height / 4)) = cv::Scalar(0, 255, 0);
  return scene;
}

std::vector<std::byte> Encode(const cv::Mat& image, const std::string& extension) {
  std::vector<uchar> encoded;
  cv::imencode(extension, image, encoded);
  return ToBytes(encoded);
}

// Inserts an EXIF block after the start marker of `jpeg`.
std::vector<std::byte> WithOrientation(std::vector<std::byte> jpeg, int32_t orientation) {
  const std::vector<std::byte> block = ExifBlock(orientation, true);
  const size_t length = block.size() + 2;
  const std::byte marker[] = {std::byte{0xff}, std::byte{0xe1}, static_cast<std::byte>(length >> 8),
                              static_cast<std::byte>(length & 0xff)};
  const auto behind = jpeg.insert(jpeg.begin() + 2, std::begin(marker), std::end(marker));
  jpeg.insert(behind + std::size(marker), block.begin(), block.end());
  return jpeg;
}

cv::Mat Shrink(const std::vector<std::byte>& encoded, int32_t short_side) {
  const auto shrunk = ShrinkImage(encoded, {}, short_side, kQuality);
  EXPECT_NE(shrunk, encoded);
  EXPECT_EQ(shrunk[0], std::byte{0xff});  // a JPEG
  return cv::imdecode(
      cv::Mat(1, static_cast<int>(shrunk.size()), CV_8U, const_cast<std::byte*>(shrunk.data())),
      cv::IMREAD_COLOR);
}

// Mean difference of pixels, 0 .. 255.
double MeanDifference(const cv::Mat& a, const cv::Mat& b) {
  return cv::norm(a, b, cv::NORM_L1) / static_cast<double>(a.total() * 3);
}

TEST(ShrinkImageTest, ShorterSideAndProportionsAreRight) {
  EXPECT_EQ(Shrink(Encode(Scene(640, 480), ".jpg"), 160).size(), cv::Size(213, 160));
  EXPECT_EQ(Shrink(Encode(Scene(300, 900), ".jpg"), 100).size(), cv::Size(100, 300));
  EXPECT_EQ(Shrink(Encode(Scene(201, 201), ".png"), 200).size(), cv::Size(200, 200));
}

TEST(ShrinkImageTest, LooksTheSame) {
  for (const char* extension : {".jpg", ".png", ".bmp"}) {
    cv::Mat expected;
    cv::resize(Scene(640, 480), expected, {200, 150}, 0, 0, cv::INTER_AREA);
    const cv::Mat shrunk = Shrink(Encode(Scene(640, 480), extension), 150);
    EXPECT_LT(MeanDifference(shrunk, expected), 3) << extension;
  }
}

TEST(ShrinkImageTest, IsUprightForEveryExifOrientation) {
  const cv::Mat upright = Scene(640, 480);
  cv::Mat expected;
  cv::resize(upright, expected, {160, 120}, 0, 0, cv::INTER_AREA);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    // Stored so that EXIF's orientation makes it upright again.
    cv::Mat stored = upright.clone();
    const bool flip_x = orientation == 2 || orientation == 3;
    const bool flip_y = orientation == 3 || orientation == 4;
    if (flip_x) cv::flip(stored, stored, 1);
    if (flip_y) cv::flip(stored, stored, 0);
    if (orientation == 5) cv::transpose(stored, stored);
    if (orientation == 6) cv::rotate(stored, stored, cv::ROTATE_90_COUNTERCLOCKWISE);
    if (orientation == 7) {
      cv::transpose(stored, stored);
      cv::flip(stored, stored, -1);
    }
    if (orientation == 8) cv::rotate(stored, stored, cv::ROTATE_90_CLOCKWISE);
    const auto encoded = WithOrientation(Encode(stored, ".jpg"), orientation);
    const cv::Mat shrunk = Shrink(encoded, 120);
    ASSERT_EQ(shrunk.size(), expected.size()) << orientation;
    EXPECT_LT(MeanDifference(shrunk, expected), 3) << orientation;
  }
}

TEST(ShrinkImageTest, SmallImagesAreUnchanged) {
  const auto encoded = Encode(Scene(200, 160), ".png");
  EXPECT_EQ(ShrinkImage(encoded, {}, 160, kQuality), encoded);
}

TEST(ShrinkImageTest, UndecodableFilesAreUnchanged) {
  const auto whole = Encode(Scene(640, 480), ".jpg");
  const std::vector<std::byte> truncated(whole.begin(), whole.begin() + whole.size() / 2);
  const std::vector<std::byte> text(100, std::byte{'x'});
  BadImagesConfig limits;
  limits.set_max_side(600);
  EXPECT_EQ(ShrinkImage(truncated, {}, 100, kQuality), truncated);
  EXPECT_EQ(ShrinkImage(text, {}, 100, kQuality), text);
  EXPECT_EQ(ShrinkImage({}, {}, 100, kQuality), std::vector<std::byte>());
  EXPECT_EQ(ShrinkImage(whole, limits, 100, kQuality), whole);
}

}  // namespace
}  // namespace ringtail
