#include "data/augmentation/pixel_operation.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace ringtail {
namespace {

using Levels = std::vector<int>;

// A grey image: the same level in all channels.
Image Grey(int32_t width, const Levels& levels) {
  Image image;
  image.Reset(width, static_cast<int32_t>(levels.size()) / width);
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = static_cast<uint8_t>(levels[i / kChannels]);
  }
  return image;
}

// The red levels of the result, after a check that it is grey.
Levels Change(Image image, PixelOperation operation, double magnitude, bool bilinear = false) {
  Image spare;
  ChangePixels({.operation = operation, .magnitude = magnitude, .bilinear = bilinear}, &image,
               &spare);
  Levels levels;
  for (size_t i = 0; i < image.pixels.size(); i += kChannels) {
    EXPECT_EQ(image.pixels[i], image.pixels[i + 1]);
    EXPECT_EQ(image.pixels[i], image.pixels[i + 2]);
    levels.push_back(image.pixels[i]);
  }
  return levels;
}

const Levels kNine = {1, 2, 3, 4, 5, 6, 7, 8, 9};

TEST(PixelOperationTest, TranslationsMoveByWholePixels) {
  for (const bool bilinear : {false, true}) {
    EXPECT_EQ(Change(Grey(3, kNine), PixelOperation::kTranslateX, 1, bilinear),
              (Levels{0, 1, 2, 0, 4, 5, 0, 7, 8}));
    EXPECT_EQ(Change(Grey(3, kNine), PixelOperation::kTranslateX, -2, bilinear),
              (Levels{3, 0, 0, 6, 0, 0, 9, 0, 0}));
    EXPECT_EQ(Change(Grey(3, kNine), PixelOperation::kTranslateY, 1, bilinear),
              (Levels{0, 0, 0, 1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(Change(Grey(3, kNine), PixelOperation::kIdentity, 5, bilinear), kNine);
  }
}

// Row y shows what lies y + 1/2 further right, column x what lies x + 1/2 further down.
TEST(PixelOperationTest, ShearsSlideRowsAndColumns) {
  EXPECT_EQ(Change(Grey(3, kNine), PixelOperation::kShearX, 1, true),
            (Levels{1, 2, 0, 5, 0, 0, 0, 0, 0}));
  EXPECT_EQ(Change(Grey(3, kNine), PixelOperation::kShearX, 0.6),
            (Levels{1, 2, 3, 5, 6, 0, 9, 0, 0}));
  EXPECT_EQ(Change(Grey(3, kNine), PixelOperation::kShearY, 0.6),
            (Levels{1, 5, 9, 4, 8, 0, 7, 0, 0}));
}

TEST(PixelOperationTest, RightAnglesAreExactAndOthersTurnAboutTheCentre) {
  for (const bool bilinear : {false, true}) {
    EXPECT_EQ(Change(Grey(3, kNine), PixelOperation::kRotate, 90, bilinear),
              (Levels{3, 6, 9, 2, 5, 8, 1, 4, 7}));
    EXPECT_EQ(Change(Grey(3, kNine), PixelOperation::kRotate, -90, bilinear),
              (Levels{7, 4, 1, 8, 5, 2, 9, 6, 3}));
    EXPECT_EQ(Change(Grey(3, kNine), PixelOperation::kRotate, 0, bilinear), kNine);
  }
  const Levels turned = Change(Grey(3, kNine), PixelOperation::kRotate, 45);
  EXPECT_EQ(turned[4], 5);
  EXPECT_EQ(turned[1], 3);  // what was up to the right is on top
  EXPECT_EQ(turned[3], 1);
}

TEST(PixelOperationTest, FactorsBlendFromBlackGreyMeanAndSmooth) {
  EXPECT_EQ(Change(Grey(2, {10, 200}), PixelOperation::kBrightness, 0.5), (Levels{15, 255}));
  EXPECT_EQ(Change(Grey(2, {10, 201}), PixelOperation::kBrightness, -0.5), (Levels{5, 100}));
  EXPECT_EQ(Change(Grey(2, {10, 201}), PixelOperation::kColor, 0.9), (Levels{10, 201}));
  // The mean is 105.5, rounded up.
  EXPECT_EQ(Change(Grey(2, {10, 201}), PixelOperation::kContrast, -0.5), (Levels{58, 153}));
  // (46 + 4 x 6) / 13 = 5.4 in the middle; the border stays.
  Levels sharp = kNine;
  sharp[4] = 6;
  EXPECT_EQ(Change(Grey(3, sharp), PixelOperation::kSharpness, 2)[4], 8);  // 5 + 3 (6 - 5)
  EXPECT_EQ(Change(Grey(3, sharp), PixelOperation::kSharpness, 2)[0], 1);
}

TEST(PixelOperationTest, ColourBlendsFromGrey) {
  Image image, spare;
  image.Reset(1, 1);
  image.pixels = {200, 100, 40};  // grey 123
  ChangePixels({.operation = PixelOperation::kColor, .magnitude = -0.5}, &image, &spare);
  EXPECT_EQ(image.pixels, (std::vector<uint8_t>{161, 111, 81}));
}

TEST(PixelOperationTest, TablesOfLevels) {
  EXPECT_EQ(Change(Grey(3, {255, 130, 63}), PixelOperation::kPosterize, 2), (Levels{192, 128, 0}));
  EXPECT_EQ(Change(Grey(3, {255, 130, 63}), PixelOperation::kPosterize, 8), (Levels{255, 130, 63}));
  EXPECT_EQ(Change(Grey(3, {255, 130, 63}), PixelOperation::kSolarize, 130), (Levels{0, 125, 63}));
  EXPECT_EQ(Change(Grey(3, {10, 20, 30}), PixelOperation::kAutoContrast, 0), (Levels{0, 127, 255}));
  EXPECT_EQ(Change(Grey(3, {9, 9, 9}), PixelOperation::kAutoContrast, 0), (Levels{9, 9, 9}));
}

// 256 pixels of three levels: a step of (256 - 1) / 255 = 1.
TEST(PixelOperationTest, EqualizeTakesTheCumulativeHistogram) {
  Levels levels(256, 10);
  levels[0] = 50;
  for (int i = 1; i < 101; ++i) levels[i] = 5;
  const Levels result = Change(Grey(16, levels), PixelOperation::kEqualize, 0);
  EXPECT_EQ(result[1], 0);
  EXPECT_EQ(result[255], 100);
  EXPECT_EQ(result[0], 255);
  EXPECT_EQ(Change(Grey(3, kNine), PixelOperation::kEqualize, 0), kNine);  // too few for a step
}

}  // namespace
}  // namespace ringtail
