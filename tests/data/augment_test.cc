#include "data/augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "data/decoding/render.h"
#include "tests/data/test_images.h"

namespace ringtail {
namespace {

RngKey Key(uint64_t i) { return RngKey(5).With(kTestStream).With(i); }

constexpr std::pair<int32_t, int32_t> kSizes[] = {{500, 375}, {375, 500}, {200, 200}, {1, 1},
                                                  {1, 900},   {900, 7},   {3, 2}};

TEST(AugmentTest, CropsLieWithinTheImageAndTheLimits) {
  AugmentConfig config;
  config.set_min_area(0.08F);
  double sum = 0, count = 0;
  for (const auto& [width, height] : kSizes) {
    for (uint64_t i = 0; i < 500; ++i) {
      const CropRectangle crop = DrawTrainingView(config, Key(i), width, height).crop;
      ASSERT_GE(crop.x, 0);
      ASSERT_GE(crop.y, 0);
      ASSERT_GE(crop.width, 1);
      ASSERT_GE(crop.height, 1);
      ASSERT_LE(crop.x + crop.width, width);
      ASSERT_LE(crop.y + crop.height, height);
      if (width < 100 || height < 100) continue;
      const double area = double(crop.width) * crop.height / (double(width) * height);
      const double aspect = double(crop.width) / crop.height;
      EXPECT_GT(area, 0.07);
      EXPECT_GT(aspect, 0.72);
      EXPECT_LT(aspect, 1.38);
      sum += area;
      ++count;
    }
  }
  // Even over 0.08 .. 1 the mean would be 0.54; large crops with the wrong aspect are drawn again.
  EXPECT_NEAR(sum / count, 0.49, 0.05);
}

TEST(AugmentTest, WhatNeverFitsBecomesTheLargestCentredCrop) {
  AugmentConfig config;
  config.set_min_area(1);
  config.set_min_aspect(0.75F);
  config.set_max_aspect(1.5F);
  EXPECT_EQ(DrawTrainingView(config, Key(1), 1000, 100).crop, (CropRectangle{425, 0, 150, 100}));
  EXPECT_EQ(DrawTrainingView(config, Key(1), 75, 1000).crop, (CropRectangle{0, 450, 75, 100}));
}

TEST(AugmentTest, DrawsHangOnTheKeyAlone) {
  const AugmentConfig config;
  const View first = DrawTrainingView(config, Key(1), 500, 375);
  EXPECT_EQ(DrawTrainingView(config, Key(1), 500, 375).crop, first.crop);
  EXPECT_NE(DrawTrainingView(config, Key(2), 500, 375).crop, first.crop);
  AugmentConfig jittered = config;
  jittered.set_brightness(0.4F);
  const View other = DrawTrainingView(jittered, Key(1), 500, 375);
  EXPECT_EQ(other.crop, first.crop);
  EXPECT_EQ(other.flip, first.flip);
  EXPECT_NE(other.brightness, 1);
  EXPECT_EQ(first.brightness, 1);
}

TEST(AugmentTest, GoldenViews) {
  AugmentConfig config;
  config.set_brightness(0.4F);
  const struct {
    CropRectangle crop;
    bool flip;
    float brightness;
  } golden[] = {
      {{80, 24, 361, 298}, true, 1.05778098F},    {{88, 23, 327, 341}, true, 1.33153343F},
      {{6, 1, 375, 363}, false, 1.15338969F},     {{222, 68, 252, 293}, false, 1.35446501F},
      {{186, 17, 287, 357}, false, 0.793168664F}, {{3, 1, 466, 374}, true, 0.914626956F}};
  for (uint64_t i = 0; i < std::size(golden); ++i) {
    const View view = DrawTrainingView(config, Key(i), 500, 375);
    EXPECT_EQ(view.crop, golden[i].crop) << i;
    EXPECT_EQ(view.flip, golden[i].flip) << i;
    EXPECT_EQ(view.brightness, golden[i].brightness) << i;
  }
}

TEST(AugmentTest, FlipsAsOftenAsAsked) {
  AugmentConfig config;
  for (const float probability : {0.0F, 0.25F, 1.0F}) {
    config.set_flip_probability(probability);
    int flips = 0;
    for (uint64_t i = 0; i < 2000; ++i) flips += DrawTrainingView(config, Key(i), 9, 9).flip;
    EXPECT_NEAR(flips, 2000 * probability, 80);
  }
}

TEST(AugmentTest, TheCentreViewIsASquareOfTheShorterSide) {
  EvaluationCropConfig config;
  EXPECT_EQ(CentreView(config, false, 400, 320).crop, (CropRectangle{60, 20, 280, 280}));
  config.set_crop_fraction(1);
  EXPECT_EQ(CentreView(config, true, 320, 400).crop, (CropRectangle{0, 40, 320, 320}));
  EXPECT_TRUE(CentreView(config, true, 320, 400).flip);
  EXPECT_EQ(CentreView(config, true, 1, 1).crop, (CropRectangle{0, 0, 1, 1}));
}

ImageHeader Header(int32_t width, int32_t height, int32_t orientation = 1) {
  ImageHeader header;
  header.width = width;
  header.height = height;
  header.orientation = orientation;
  return header;
}

TEST(RegionOfCropTest, ShrinksByPowersOfTwoButNotBelowTheImageSize) {
  EXPECT_EQ(RegionOfCrop({8, 16, 255, 300}, Header(500, 400), 128).denominator, 1);
  EXPECT_EQ(RegionOfCrop({8, 16, 256, 300}, Header(500, 400), 128), (Region{2, 4, 8, 128, 150}));
  EXPECT_EQ(RegionOfCrop({8, 16, 512, 600}, Header(700, 700), 128), (Region{4, 2, 4, 128, 150}));
  EXPECT_EQ(RegionOfCrop({0, 0, 4096, 4096}, Header(5000, 5000), 128).denominator, 32);
  EXPECT_EQ(RegionOfCrop({1, 2, 3, 4}, Header(10, 10), 128), (Region{1, 1, 2, 3, 4}));
}

TEST(RegionOfCropTest, AlwaysLiesWithinTheShrunkImage) {
  AugmentConfig config;
  config.set_min_area(0.08F);
  for (const auto& [width, height] : kSizes) {
    for (uint64_t i = 0; i < 300; ++i) {
      const int32_t orientation = static_cast<int32_t>(i % 8) + 1;
      const ImageHeader header = Header(width, height, orientation);
      const View view =
          DrawTrainingView(config, Key(i), header.upright_width(), header.upright_height());
      for (const int32_t size : {8, 33, 128}) {
        const Region region = RegionOfCrop(view.crop, header, size);
        const Region whole = WholeRegion(width, height, region.denominator);
        ASSERT_GE(region.x, 0);
        ASSERT_GE(region.y, 0);
        ASSERT_LE(region.x + region.width, whole.width);
        ASSERT_LE(region.y + region.height, whole.height);
        if (region.denominator > 1) {
          ASSERT_GE(std::min(region.width, region.height), size);
        }
      }
    }
  }
}

Normalization Plain() { return {{1, 1, 1}, {0, 0, 0}}; }

std::vector<float> Render(const Image& image, int32_t orientation, const View& view, int32_t size,
                          const Normalization& normalization = Plain()) {
  std::vector<float> result(static_cast<size_t>(kChannels) * size * size, -1);
  RenderBuffers buffers;
  RenderImage(ImageView(image), orientation, view, normalization, size, &buffers, result.data());
  return result;
}

TEST(RenderTest, PlanesAreRgbAndNormalised) {
  Image image;
  image.Reset(2, 2);
  image.pixels = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  EXPECT_EQ(Render(image, 1, {}, 2), (std::vector<float>{1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12}));
  View flipped;
  flipped.flip = true;
  EXPECT_EQ(Render(image, 1, flipped, 2),
            (std::vector<float>{4, 1, 10, 7, 5, 2, 11, 8, 6, 3, 12, 9}));
  DataConfig config;
  for (const float mean : {1.0F, 2.0F, 3.0F}) config.add_mean(mean);
  for (const float deviation : {2.0F, 4.0F, 8.0F}) config.add_std(deviation);
  const std::vector<float> normalised = Render(image, 1, {}, 2, NormalizationFromConfig(config));
  EXPECT_FLOAT_EQ(normalised[3], (10 - 1) / 2.0F);
  EXPECT_FLOAT_EQ(normalised[7], (11 - 2) / 4.0F);
  EXPECT_FLOAT_EQ(normalised[11], (12 - 3) / 8.0F);
  const Normalization usual = NormalizationFromConfig({});
  EXPECT_NEAR(123.675F * usual.scale[0] + usual.offset[0], 0, 1e-6);
  EXPECT_NEAR((103.53F + 57.375F) * usual.scale[2] + usual.offset[2], 1, 1e-6);
}

// What each of EXIF's orientations means, from the stored image
//   1 2
//   3 4
TEST(RenderTest, ExifTurns) {
  Image image;
  image.Reset(2, 2);
  image.pixels = {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4};
  const std::vector<float> upright[] = {{1, 2, 3, 4}, {2, 1, 4, 3}, {4, 3, 2, 1}, {3, 4, 1, 2},
                                        {1, 3, 2, 4}, {3, 1, 4, 2}, {4, 2, 3, 1}, {2, 4, 1, 3}};
  for (int32_t orientation = 1; orientation <= 8; ++orientation) {
    std::vector<float> red = Render(image, orientation, {}, 2);
    red.resize(4);
    EXPECT_EQ(red, upright[orientation - 1]) << orientation;
  }
}

// A crop of a turned image is the crop of the same image stored upright.
TEST(RenderTest, CropsAreTurnedWithTheImage) {
  constexpr int32_t kSize = 24;
  const Image stored = DrawImage(61, 45);
  for (int32_t orientation = 1; orientation <= 8; ++orientation) {
    const ImageHeader header = Header(stored.width, stored.height, orientation);
    Image upright;
    upright.Reset(header.upright_width(), header.upright_height());
    const int32_t w = stored.width, h = stored.height;
    for (int32_t y = 0; y < upright.height; ++y) {
      for (int32_t x = 0; x < upright.width; ++x) {
        const int32_t a = orientation >= 5 ? y : x, b = orientation >= 5 ? x : y;
        const bool from_right =
            orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
        const bool from_below =
            orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
        const uint8_t* src =
            stored.Row(from_below ? h - 1 - b : b) + (from_right ? w - 1 - a : a) * kChannels;
        std::copy_n(src, kChannels, upright.Row(y) + x * kChannels);
      }
    }
    const CropRectangle crop = {5, 3, 31, 37};
    const Region region = RegionOfCrop(crop, header, kSize);
    std::vector<float> result(kChannels * kSize * kSize), expected = result;
    RenderBuffers buffers;
    RenderImage(ImageView(stored, region.x, region.y, region.width, region.height), orientation, {},
                Plain(), kSize, &buffers, result.data());
    RenderImage(ImageView(upright, crop.x, crop.y, crop.width, crop.height), 1, {}, Plain(), kSize,
                &buffers, expected.data());
    for (size_t i = 0; i < result.size(); ++i) {
      ASSERT_NEAR(result[i], expected[i], 1.01) << orientation << " at " << i;  // rounding to u8
    }
  }
}

TEST(RenderTest, JitterFollowsItsFormulas) {
  Image image;
  image.Reset(2, 1);
  image.pixels = {200, 100, 40, 20, 60, 180};
  View view;
  view.brightness = 1.5F, view.contrast = 0.5F, view.saturation = 1.4F;
  const std::vector<float> result = Render(image, 1, view, 2);
  double p[2][3], mean = 0;
  const auto grey = [](const double* c) { return 0.299 * c[0] + 0.587 * c[1] + 0.114 * c[2]; };
  const auto cut = [](double v) { return std::clamp(v, 0.0, 255.0); };
  for (int i = 0; i < 2; ++i) {
    for (int c = 0; c < 3; ++c) p[i][c] = cut(image.pixels[3 * i + c] * 1.5);
    mean += grey(p[i]) / 2;
  }
  for (int i = 0; i < 2; ++i) {
    for (double& value : p[i]) value = cut(0.5 * value + 0.5 * mean);
    const double own = grey(p[i]);
    for (double& value : p[i]) value = cut(1.4 * value - 0.4 * own);
    for (int c = 0; c < 3; ++c) {
      EXPECT_NEAR(result[c * 4 + i], p[i][c], 1e-3);
      EXPECT_NEAR(result[c * 4 + 2 + i], p[i][c], 1e-3);  // the second row repeats the first
    }
  }
}

}  // namespace
}  // namespace ringtail
