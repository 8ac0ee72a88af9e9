// Grad-CAM by hand, on numbers small enough to check on paper.
#include "apps/grad_cam/activation_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "apps/grad_cam/overlay.h"

namespace ringtail {
namespace {

using testing::Each;
using testing::ElementsAre;

// Two channels of 2 x 2 pixels. alpha = (1 + 1 + 1 + 5) / 4 = 2 and (-4 + 0 + 0 + 0) / 4 = -1:
//   2 A0 - A1 = (2 - 4, 4 - 0, 0 - 0, 6 - 4) = (-2, 4, 0, 2), then ReLU, then over 4.
TEST(GradCamTest, IsEquations1And2) {
  const std::vector<float> activations = {1, 2, 0, 3, 4, 0, 0, 4};
  const std::vector<float> gradient = {1, 1, 1, 5, -4, 0, 0, 0};
  const ActivationMap map = GradCam(activations, gradient, 2, 2, 2);
  EXPECT_EQ(map.height, 2);
  EXPECT_EQ(map.width, 2);
  EXPECT_THAT(map.values, ElementsAre(0, 1, 0, 0.5F));
}

TEST(GradCamTest, RowsComeBeforeColumns) {
  const std::vector<float> activations = {0, 1, 2, 3, 4, 5};
  const std::vector<float> gradient(6, 1.0F);
  const ActivationMap map = GradCam(activations, gradient, 1, 2, 3);
  EXPECT_FLOAT_EQ(map.at(0, 2), 0.4F);
  EXPECT_FLOAT_EQ(map.at(1, 0), 0.6F);
}

TEST(GradCamTest, NothingThatSpokeForItStaysZero) {
  const std::vector<float> activations = {1, 2, 3, 4};
  for (const float slope : {-1.0F, 0.0F}) {
    const std::vector<float> gradient(4, slope);
    EXPECT_THAT(GradCam(activations, gradient, 1, 2, 2).values, Each(0.0F)) << slope;
  }
}

TEST(GradCamTest, ScaleOfTheScoreDoesNotMatter) {
  const std::vector<float> activations = {1, 2, 3, 4};
  const std::vector<float> small(4, 1e-20F), large(4, 1e20F);
  EXPECT_EQ(GradCam(activations, small, 1, 2, 2).values,
            GradCam(activations, large, 1, 2, 2).values);
}

// Centres of the 4 pixels lie at -1/4, 1/4, 3/4 and 5/4 of the 2.
TEST(ResizeTest, IsBilinearBetweenCentres) {
  const ActivationMap map = {.height = 1, .width = 2, .values = {0, 1}};
  const ActivationMap wide = Resize(map, 2, 4);
  EXPECT_THAT(wide.values, ElementsAre(0, 0.25F, 0.75F, 1, 0, 0.25F, 0.75F, 1));
  const ActivationMap square = {.height = 2, .width = 2, .values = {0, 1, 0.5F, 0}};
  EXPECT_EQ(Resize(square, 2, 2).values, square.values);
  const ActivationMap larger = Resize(square, 4, 4);
  EXPECT_EQ(larger.at(0, 3), 1);
  EXPECT_EQ(larger.at(3, 0), 0.5F);
  EXPECT_EQ(larger.at(1, 1), 0.75F * 0.25F * 1 + 0.25F * 0.75F * 0.5F);
}

TEST(ResizeTest, OnePixelBecomesOneColour) {
  EXPECT_THAT(Resize({.height = 1, .width = 1, .values = {0.5F}}, 3, 2).values, Each(0.5F));
}

std::string StrongestAt(int64_t size, int64_t y, int64_t x) {
  ActivationMap map = {
      .height = size, .width = size, .values = std::vector<float>(size * size, 0.0F)};
  map.values[y * size + x] = 1;
  return Strongest(map);
}

TEST(StrongestTest, NamesTheNinth) {
  EXPECT_EQ(StrongestAt(7, 0, 0), "the top left");
  EXPECT_EQ(StrongestAt(7, 3, 3), "the centre");
  EXPECT_EQ(StrongestAt(7, 6, 3), "the bottom");
  EXPECT_EQ(StrongestAt(7, 2, 4), "the centre");
  EXPECT_EQ(StrongestAt(7, 1, 5), "the top right");
  EXPECT_EQ(StrongestAt(3, 1, 0), "the left");
  EXPECT_EQ(StrongestAt(2, 1, 1), "the bottom right");
  EXPECT_EQ(StrongestAt(1, 0, 0), "the centre");
  EXPECT_EQ(Strongest({.height = 1, .width = 2, .values = {0, 0}}), "");
}

// Viridis ends at (68, 1, 84) and (253, 231, 37); half of it is added to half of the image.
TEST(OverlayTest, MixesTheImageWithTheColourOfTheMap) {
  Image image;
  image.Reset(2, 1);
  image.pixels = {200, 100, 50, 0, 0, 0};
  const Image overlay = Overlay(image, {.height = 1, .width = 2, .values = {0, 1}});
  EXPECT_EQ(overlay.width, 2);
  EXPECT_EQ(overlay.height, 1);
  const std::vector<float> expected = {134, 50.5F, 67, 126.5F, 115.5F, 18.5F};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(overlay.pixels[i], expected[i], 1) << i;
  }
}

// A reader who sees no colours sees the lightness, which must rise with the value.
TEST(OverlayTest, LightnessRisesWithTheValue) {
  Image grey;
  constexpr int32_t kWidth = 64;
  grey.Reset(kWidth, 1);
  std::fill(grey.pixels.begin(), grey.pixels.end(), uint8_t{128});
  ActivationMap ramp = {.height = 1, .width = kWidth, .values = {}};
  for (int i = 0; i < kWidth; ++i) ramp.values.push_back(static_cast<float>(i) / (kWidth - 1));
  const Image overlay = Overlay(grey, ramp);
  double before = 0;
  for (int i = 0; i < kWidth; ++i) {
    const uint8_t* pixel = overlay.Row(0) + i * kChannels;
    const double luma = 0.2126 * pixel[0] + 0.7152 * pixel[1] + 0.0722 * pixel[2];
    EXPECT_GT(luma, before - 1) << i;  // less the rounding of three channels
    before = luma;
  }
  EXPECT_GT(before, 130);
}

TEST(OverlayTest, ImagesOfANetworkAreReadBack) {
  Normalization normalization;
  normalization.scale = {0.5F, 0.25F, 2};
  normalization.offset = {-1, 1, 0};
  std::vector<float> planes;
  for (int c = 0; c < kChannels; ++c) {
    for (int i = 0; i < 4; ++i) {
      const auto pixel = static_cast<float>(10 * c + i);
      planes.push_back(pixel * normalization.scale[c] + normalization.offset[c]);
    }
  }
  const Image image = ImageFromPlanes(planes.data(), 2, normalization);
  EXPECT_THAT(image.pixels, ElementsAre(0, 10, 20, 1, 11, 21, 2, 12, 22, 3, 13, 23));
}

}  // namespace
}  // namespace ringtail
