#include "data/augmentation/image_mix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "data/decoding/image.h"

namespace ringtail {
namespace {

constexpr int32_t kSize = 32;
constexpr int kDraws = 4000;

RngKey Key(uint64_t i) { return RngKey(5).With(kTestStream).With(i); }

AugmentConfig Mixup(float alpha) {
  AugmentConfig config;
  config.mutable_mixup()->set_alpha(alpha);
  return config;
}
AugmentConfig Cutmix(float alpha) {
  AugmentConfig config;
  config.mutable_cutmix()->set_alpha(alpha);
  return config;
}

// Mean 1/2, variance 1 / (4 (2 alpha + 1)), and a half of the draws below 1/2.
TEST(DrawBetaTest, HasTheMomentsOfTheDistribution) {
  for (const double alpha : {0.05, 0.2, 1.0, 4.0, 100.0}) {
    Rng rng(Key(static_cast<uint64_t>(100 * alpha)));
    double sum = 0, squares = 0, fourths = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double x = DrawBeta(alpha, &rng) - 0.5;
      ASSERT_TRUE(x >= -0.5 && x <= 0.5) << alpha;
      sum += x;
      squares += x * x;
      fourths += x * x * x * x;
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    EXPECT_NEAR(sum / kDraws, 0, 5 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(squares / kDraws / variance, 1, 0.12) << alpha;
    // E x^4 = 3 / (16 (2 a + 1) (2 a + 3))
    EXPECT_NEAR(fourths / kDraws * 16 * (2 * alpha + 1) * (2 * alpha + 3) / 3, 1, 0.25) << alpha;
  }
}

TEST(DrawBetaTest, AlphaOneIsUniform) {
  Rng rng(Key(1));
  std::vector<int> bins(10);
  for (int i = 0; i < kDraws; ++i) ++bins[static_cast<size_t>(DrawBeta(1, &rng) * 10)];
  for (const int count : bins) EXPECT_NEAR(count, kDraws / 10, 95);  // 5 sigma
}

TEST(DrawBetaTest, ATinyAlphaGivesNearlyOnlyZerosAndOnes) {
  Rng rng(Key(2));
  int middle = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = DrawBeta(1e-4, &rng);
    ASSERT_TRUE(x >= 0 && x <= 1);
    if (x > 0.01 && x < 0.99) ++middle;
  }
  EXPECT_LT(middle, 20);
}

TEST(DrawMixTest, IsOffUnlessConfigured) {
  AugmentConfig config;
  EXPECT_FALSE(MixesImages(config));
  EXPECT_EQ(DrawMix(config, Key(1), kSize), ImageMix());
  EXPECT_FALSE(MixesImages(Mixup(0)));
  EXPECT_EQ(DrawMix(Cutmix(0), Key(1), kSize), ImageMix());
  EXPECT_TRUE(MixesImages(Mixup(0.2F)));
  EXPECT_TRUE(MixesImages(Cutmix(1)));
}

// The mean of max(l, 1 - l) of a uniform l is 3/4.
TEST(DrawMixTest, OfMixupEachImageKeepsAtLeastAHalf) {
  double sum = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const ImageMix mix = DrawMix(Mixup(1), Key(i), kSize);
    ASSERT_EQ(mix.kind, ImageMix::Kind::kMixup);
    ASSERT_TRUE(mix.share >= 0.5F && mix.share < 1) << mix.share;
    sum += mix.share;
  }
  EXPECT_NEAR(sum / kDraws, 0.75, 0.012);
  EXPECT_EQ(DrawMix(Mixup(1), Key(3), kSize), DrawMix(Mixup(1), Key(3), kSize));
  EXPECT_NE(DrawMix(Mixup(1), Key(3), kSize), DrawMix(Mixup(1), Key(4), kSize));
}

TEST(DrawMixTest, TheShareOfCutmixIsExactlyTheAreaThatStays) {
  int mixed = 0, at_edge = 0;
  double sum = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const ImageMix mix = DrawMix(Cutmix(1), Key(i), kSize);
    if (mix.kind == ImageMix::Kind::kNone) continue;
    ++mixed;
    ASSERT_EQ(mix.kind, ImageMix::Kind::kCutmix);
    ASSERT_TRUE(mix.x >= 0 && mix.y >= 0 && mix.width > 0 && mix.height > 0);
    ASSERT_TRUE(mix.x + mix.width <= kSize && mix.y + mix.height <= kSize);
    EXPECT_EQ(mix.share, 1 - static_cast<float>(mix.width * mix.height) / (kSize * kSize));
    at_edge +=
        mix.x == 0 || mix.y == 0 || mix.x + mix.width == kSize || mix.y + mix.height == kSize;
    sum += mix.share;
  }
  EXPECT_GT(mixed, kDraws * 9 / 10);
  EXPECT_GT(at_edge, mixed / 2);
  // Of uniform lambda 1/2 + 1/5 - 1/48, as rectangles are cut at edges; and they have even sides.
  EXPECT_NEAR(sum / mixed, 0.69, 0.04);
}

TEST(DrawMixTest, BothTakeTurnsAsAsked) {
  AugmentConfig config = Mixup(0.2F);
  config.mutable_cutmix()->set_alpha(1);
  config.set_switch_probability(0.25F);
  int cuts = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    cuts += DrawMix(config, Key(i), kSize).kind == ImageMix::Kind::kCutmix;
  }
  EXPECT_NEAR(cuts, kDraws / 4, 180);
  config.set_switch_probability(0);
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_NE(DrawMix(config, Key(i), kSize).kind, ImageMix::Kind::kCutmix);
  }
  config.set_switch_probability(1);
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_NE(DrawMix(config, Key(i), kSize).kind, ImageMix::Kind::kMixup);
  }
}

class ApplyMixTest : public testing::Test {
 protected:
  ApplyMixTest() {
    Rng rng(Key(9));
    for (std::vector<float>* image : {&a_, &b_}) {
      for (int i = 0; i < kChannels * kSize * kSize; ++i) image->push_back(rng.Normal());
    }
  }
  std::vector<float> a_, b_;
};

TEST_F(ApplyMixTest, MixupIsTheWeightedSum) {
  const ImageMix mix{.kind = ImageMix::Kind::kMixup, .share = 0.7F};
  std::vector<float> x = a_;
  MixInto(mix, kSize, b_, x);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(x[i], 0.7F * double{a_[i]} + (1 - double{0.7F}) * double{b_[i]}, 1e-6);
  }
}

TEST_F(ApplyMixTest, CutmixExchangesTheRectangleOnly) {
  const ImageMix mix{
      .kind = ImageMix::Kind::kCutmix, .share = 0.9F, .x = 3, .y = 20, .width = 9, .height = 12};
  std::vector<float> x = a_;
  MixInto(mix, kSize, b_, x);
  int changed = 0;
  for (int i = 0; i < kChannels * kSize * kSize; ++i) {
    const int column = i % kSize, line = i / kSize % kSize;
    const bool inside = column >= 3 && column < 12 && line >= 20;
    EXPECT_EQ(x[i], inside ? b_[i] : a_[i]);
    changed += inside;
  }
  EXPECT_EQ(changed, kChannels * 9 * 12);
}

TEST_F(ApplyMixTest, APairHasTheBitsOfEachAlone) {
  for (uint64_t i = 0; i < 20; ++i) {
    AugmentConfig config = Mixup(1);
    config.mutable_cutmix()->set_alpha(1);
    const ImageMix mix = DrawMix(config, Key(i), kSize);
    std::vector<float> a = a_, b = b_, pair_a = a_, pair_b = b_;
    MixInto(mix, kSize, b_, a);
    MixInto(mix, kSize, a_, b);
    MixPair(mix, kSize, pair_a, pair_b);
    EXPECT_EQ(pair_a, a) << i;
    EXPECT_EQ(pair_b, b) << i;
  }
}

TEST(DescribeMixTest, SaysWhatIsOn) {
  AugmentConfig config;
  EXPECT_EQ(DescribeMix(config), "");
  config = Mixup(0.2F);
  EXPECT_EQ(DescribeMix(config), "mixup (alpha 0.2)");
  config.mutable_cutmix()->set_alpha(1);
  EXPECT_EQ(DescribeMix(config), "mixup (alpha 0.2) or, of 50 % of the pairs, cutmix (alpha 1)");
  EXPECT_EQ(DescribeMix(Cutmix(0.5F)), "cutmix (alpha 0.5)");
}

}  // namespace
}  // namespace ringtail
