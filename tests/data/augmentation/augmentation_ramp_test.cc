// Augmentation that grows over the first epochs: the numbers by hand. (loader_test: images.)
#include "data/augmentation/augmentation_ramp.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "core/random.h"
#include "data/augment.h"

namespace ringtail {
namespace {

AugmentConfig Ramped() {
  AugmentConfig config;
  config.set_min_area(0.4F);
  config.set_brightness(0.2F);
  config.set_contrast(0.4F);
  config.set_saturation(0.6F);
  config.set_erasing(0.5F);
  config.set_ramp_start(0.25F);
  config.set_ramp_epochs(4);
  return config;
}

TEST(AugmentationRampTest, GrowsInAStraightLine) {
  const AugmentConfig config = Ramped();
  EXPECT_FLOAT_EQ(AugmentationStrength(config, 0), 0.25F);
  EXPECT_FLOAT_EQ(AugmentationStrength(config, 1), 0.4375F);
  EXPECT_FLOAT_EQ(AugmentationStrength(config, 2), 0.625F);
  EXPECT_EQ(AugmentationStrength(config, 4), 1);
  EXPECT_EQ(AugmentationStrength(config, 1'000'000), 1);
}

TEST(AugmentationRampTest, IsOffByDefault) {
  AugmentConfig config = Ramped();
  config.clear_ramp_epochs();
  EXPECT_EQ(AugmentationStrength(config, 0), 1);
  EXPECT_EQ(AugmentationStrength(AugmentConfig(), 0), 1);
}

TEST(AugmentationRampTest, ScalesCropsColoursAndErasing) {
  AugmentConfig config = Ramped();
  const AugmentConfig half = AugmentationOfStrength(config, 0.5F);
  EXPECT_FLOAT_EQ(half.min_area(), 0.7F);
  EXPECT_FLOAT_EQ(half.brightness(), 0.1F);
  EXPECT_FLOAT_EQ(half.contrast(), 0.2F);
  EXPECT_FLOAT_EQ(half.saturation(), 0.3F);
  EXPECT_FLOAT_EQ(half.erasing(), 0.25F);
  EXPECT_FLOAT_EQ(half.flip_probability(), config.flip_probability());
  EXPECT_FLOAT_EQ(half.min_aspect(), config.min_aspect());
  // Crops stay within their limits.
  config.set_max_area(0.6F);
  EXPECT_FLOAT_EQ(AugmentationOfStrength(config, 0.1F).min_area(), 0.6F);
  EXPECT_FLOAT_EQ(AugmentationOfStrength(config, 1).min_area(), 0.4F);
}

// The draws of an image are the same ones, further or less far from the image as it is.
TEST(AugmentationRampTest, TheSameDrawsMoveLess) {
  const AugmentConfig config = Ramped(), weak = AugmentationOfStrength(config, 0.25F);
  for (uint64_t i = 0; i < 50; ++i) {
    const RngKey key = RngKey(1).With(i);
    const Augmentation full = DrawAugmentation(config, key, 500, 500, 64);
    const Augmentation less = DrawAugmentation(weak, key, 500, 500, 64);
    EXPECT_NEAR(less.brightness - 1, (full.brightness - 1) / 4, 1e-6);
    EXPECT_NEAR(less.saturation - 1, (full.saturation - 1) / 4, 1e-6);
    EXPECT_EQ(less.flip, full.flip);
    EXPECT_GE(less.crop.width * less.crop.height, 0.84 * 500 * 500);  // 1 - 0.25 * 0.6, rounded
  }
}

}  // namespace
}  // namespace ringtail
