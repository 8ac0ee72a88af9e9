#include "data/augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

#include "core/random.h"

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
      const CropRectangle crop = DrawAugmentation(config, Key(i), width, height, 128).crop;
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
  // Uniform over 0.08 .. 1, the mean would be 0.54; large crops with the wrong aspect are drawn
  // again.
  EXPECT_NEAR(sum / count, 0.49, 0.05);
}

TEST(AugmentTest, WithoutAFittingDrawTakesTheLargestCentredCrop) {
  AugmentConfig config;
  config.set_min_area(1);
  config.set_min_aspect(0.75F);
  config.set_max_aspect(1.5F);
  EXPECT_EQ(DrawAugmentation(config, Key(1), 1000, 100, 128).crop,
            (CropRectangle{425, 0, 150, 100}));
  EXPECT_EQ(DrawAugmentation(config, Key(1), 75, 1000, 128).crop, (CropRectangle{0, 450, 75, 100}));
}

TEST(AugmentTest, DrawsDependOnTheKeyAlone) {
  const AugmentConfig config;
  const Augmentation first = DrawAugmentation(config, Key(1), 500, 375, 128);
  EXPECT_EQ(DrawAugmentation(config, Key(1), 500, 375, 128).crop, first.crop);
  EXPECT_NE(DrawAugmentation(config, Key(2), 500, 375, 128).crop, first.crop);
  AugmentConfig jittered = config;
  jittered.set_brightness(0.4F);
  jittered.set_trivial_augment(AugmentConfig::NEAREST);
  jittered.set_erasing(1);
  const Augmentation other = DrawAugmentation(jittered, Key(1), 500, 375, 128);
  EXPECT_EQ(other.crop, first.crop);
  EXPECT_EQ(other.flip, first.flip);
  EXPECT_NE(other.brightness, 1);
  EXPECT_EQ(first.brightness, 1);
  EXPECT_EQ(first.change, PixelChange());
  EXPECT_EQ(first.erased, ErasedRectangle());
  EXPECT_GT(other.erased.width, 0);
}

TEST(AugmentTest, GoldenAugmentations) {
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
    const Augmentation augmentation = DrawAugmentation(config, Key(i), 500, 375, 128);
    EXPECT_EQ(augmentation.crop, golden[i].crop) << i;
    EXPECT_EQ(augmentation.flip, golden[i].flip) << i;
    EXPECT_EQ(augmentation.brightness, golden[i].brightness) << i;
  }
}

TEST(AugmentTest, FlipsAsOftenAsAsked) {
  AugmentConfig config;
  for (const float probability : {0.0F, 0.25F, 1.0F}) {
    config.set_flip_probability(probability);
    int flips = 0;
    for (uint64_t i = 0; i < 2000; ++i) flips += DrawAugmentation(config, Key(i), 9, 9, 128).flip;
    EXPECT_NEAR(flips, 2000 * probability, 80);
  }
}

TEST(AugmentTest, TheCentreCropIsASquareOfTheShorterSide) {
  EvaluationCropConfig config;
  EXPECT_EQ(CentreCrop(config, false, 400, 320).crop, (CropRectangle{60, 20, 280, 280}));
  config.set_crop_fraction(1);
  EXPECT_EQ(CentreCrop(config, true, 320, 400).crop, (CropRectangle{0, 40, 320, 320}));
  EXPECT_TRUE(CentreCrop(config, true, 320, 400).flip);
  EXPECT_EQ(CentreCrop(config, true, 1, 1).crop, (CropRectangle{0, 0, 1, 1}));
}

ImageHeader Header(int32_t width, int32_t height, int32_t orientation = 1) {
  ImageHeader header;
  header.width = width;
  header.height = height;
  header.orientation = OrientationOfExif(orientation);
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
      const Augmentation augmentation =
          DrawAugmentation(config, Key(i), header.upright_width(), header.upright_height(), 128);
      for (const int32_t size : {8, 33, 128}) {
        const Region region = RegionOfCrop(augmentation.crop, header, size);
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

}  // namespace
}  // namespace ringtail
