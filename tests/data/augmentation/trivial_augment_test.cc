#include "data/augmentation/trivial_augment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace ringtail {
namespace {

constexpr int32_t kSize = 224;

RngKey Key(uint64_t i) { return RngKey(5).With(kTestStream).With(i); }

TEST(TrivialAugmentTest, MagnitudesAreTheWideRanges) {
  const auto last = [](PixelOperation operation, bool negative = false) {
    return MagnitudeOfBin(operation, kMagnitudeBins - 1, negative, kSize);
  };
  EXPECT_DOUBLE_EQ(last(PixelOperation::kShearX), 0.99);
  EXPECT_DOUBLE_EQ(last(PixelOperation::kShearY, true), -0.99);
  EXPECT_EQ(last(PixelOperation::kTranslateX), 32);
  EXPECT_EQ(last(PixelOperation::kTranslateY, true), -32);
  EXPECT_EQ(MagnitudeOfBin(PixelOperation::kTranslateX, 30, false, 64), 9);  // 32 x 64 / 224 = 9.1
  EXPECT_EQ(MagnitudeOfBin(PixelOperation::kTranslateX, 1, true, kSize), -1);
  EXPECT_EQ(last(PixelOperation::kRotate), 135);
  EXPECT_DOUBLE_EQ(last(PixelOperation::kSharpness, true), -0.99);
  EXPECT_EQ(last(PixelOperation::kPosterize), 2);
  EXPECT_EQ(MagnitudeOfBin(PixelOperation::kPosterize, 0, false, kSize), 8);
  EXPECT_EQ(MagnitudeOfBin(PixelOperation::kPosterize, 3, false, kSize), 7);  // 0.6 rounds up
  EXPECT_EQ(last(PixelOperation::kSolarize), 0);
  EXPECT_EQ(MagnitudeOfBin(PixelOperation::kSolarize, 0, false, kSize), 255);
  EXPECT_EQ(last(PixelOperation::kEqualize), 0);
}

TEST(TrivialAugmentTest, DrawsEveryOperationAndSignEquallyOften) {
  AugmentConfig config;
  EXPECT_EQ(DrawPixelChange(config, Key(1), kSize), PixelChange());
  config.set_trivial_augment(AugmentConfig::BILINEAR);
  constexpr int kDraws = 7000;
  std::map<PixelOperation, int> counts;
  std::set<double> rotations;
  int negative = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const PixelChange change = DrawPixelChange(config, Key(i), kSize);
    EXPECT_TRUE(change.bilinear);
    ++counts[change.operation];
    if (change.operation != PixelOperation::kRotate) continue;
    rotations.insert(change.magnitude);
    if (change.magnitude < 0) ++negative;
  }
  ASSERT_EQ(counts.size(), size_t{kPixelOperations});
  for (const auto& [operation, count] : counts) {
    EXPECT_NEAR(count, 1.0 * kDraws / kPixelOperations, 110)
        << PixelOperationName(operation);  // 5 sigma
  }
  EXPECT_EQ(rotations.size(), 2 * size_t{kMagnitudeBins} - 1);
  EXPECT_NEAR(negative, 242, 60);
  EXPECT_EQ(DrawPixelChange(config, Key(3), kSize), DrawPixelChange(config, Key(3), kSize));
}

TEST(TrivialAugmentTest, ErasesAsOftenAndAsMuchAsAsked) {
  AugmentConfig config;
  EXPECT_EQ(DrawErasedRectangle(config, Key(1), kSize), ErasedRectangle());
  config.set_erasing(0.25F);
  constexpr int kDraws = 4000;
  int erased = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const ErasedRectangle r = DrawErasedRectangle(config, Key(i), kSize);
    if (r.width == 0) continue;
    ++erased;
    EXPECT_TRUE(r.x >= 0 && r.y >= 0 && r.x + r.width <= kSize && r.y + r.height <= kSize);
    const double area = double(r.width) * r.height / (kSize * kSize);
    const double aspect = double(r.height) / r.width;
    EXPECT_TRUE(area > 0.019 && area < 0.34) << area;
    EXPECT_TRUE(aspect > 0.28 && aspect < 3.5) << aspect;
  }
  EXPECT_NEAR(erased, kDraws / 4.0, 140);
  config.set_erasing(1);
  EXPECT_GT(DrawErasedRectangle(config, Key(1), 8).width, 0);
}

TEST(TrivialAugmentTest, SaysWhatIsOn) {
  AugmentConfig config;
  EXPECT_EQ(DescribeAugmentations(config), "");
  config.set_erasing(0.25F);
  EXPECT_EQ(DescribeAugmentations(config), "random erasing of 25 % of the images");
  config.set_trivial_augment(AugmentConfig::NEAREST);
  EXPECT_EQ(DescribeAugmentations(config),
            "TrivialAugment (nearest pixels), random erasing of 25 % of the images");
  config.mutable_mixup()->set_alpha(0.2F);
  EXPECT_EQ(DescribeAugmentations(config),
            "TrivialAugment (nearest pixels), random erasing of 25 % of the images, "
            "mixup (alpha 0.2)");
  AugmentConfig ramped;
  ramped.set_ramp_epochs(8);
  EXPECT_EQ(DescribeAugmentations(ramped),
            "crops and colours from 50 to 100 % of their strength over 8 epochs");
}

}  // namespace
}  // namespace ringtail
