#include "data/render.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/data/test_images.h"

namespace ringtail {
namespace {

Normalization Plain() { return {{1, 1, 1}, {0, 0, 0}}; }

std::vector<float> Render(const Image& image, int32_t orientation, const Augmentation& augmentation,
                          int32_t size, const Normalization& normalization = Plain()) {
  std::vector<float> result(static_cast<size_t>(kChannels) * size * size, -1);
  RenderBuffers buffers;
  RenderImage(ImageView(image), OrientationOfExif(orientation), augmentation, normalization, size,
              &buffers, result.data());
  return result;
}

TEST(RenderTest, PlanesAreRgbAndNormalised) {
  Image image;
  image.Reset(2, 2);
  image.pixels = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  EXPECT_EQ(Render(image, 1, {}, 2), (std::vector<float>{1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12}));
  Augmentation flipped;
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

// The upright image for each of EXIF's orientations of the stored image
//   1 2
//   3 4
TEST(RenderTest, ExifOrientations) {
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

// A crop of an image with an EXIF orientation equals the crop of the same image stored upright.
TEST(RenderTest, CropsFollowTheOrientation) {
  constexpr int32_t kSize = 24;
  const Image stored = DrawImage(61, 45);
  for (int32_t orientation = 1; orientation <= 8; ++orientation) {
    ImageHeader header;
    header.width = stored.width;
    header.height = stored.height;
    header.orientation = OrientationOfExif(orientation);
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
    RenderImage(ImageView(stored, region.x, region.y, region.width, region.height),
                header.orientation, {}, Plain(), kSize, &buffers, result.data());
    RenderImage(ImageView(upright, crop.x, crop.y, crop.width, crop.height), {}, {}, Plain(), kSize,
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
  Augmentation augmentation;
  augmentation.brightness = 1.5F, augmentation.contrast = 0.5F, augmentation.saturation = 1.4F;
  const std::vector<float> result = Render(image, 1, augmentation, 2);
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

TEST(RenderTest, OperationsFollowTheFlipAndErasedPixelsHaveTheMeanColour) {
  Image image;
  image.Reset(2, 2);
  image.pixels = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  Augmentation augmentation;
  augmentation.flip = true;
  augmentation.change = {.operation = PixelOperation::kTranslateX, .magnitude = 1};
  EXPECT_EQ(Render(image, 1, augmentation, 2),
            (std::vector<float>{0, 4, 0, 10, 0, 5, 0, 11, 0, 6, 0, 12}));
  augmentation = {};
  augmentation.erased = {.x = 1, .y = 0, .width = 1, .height = 2};
  const Normalization shifted = {{1, 1, 1}, {-10, -20, -30}};
  EXPECT_EQ(Render(image, 1, augmentation, 2, shifted),
            (std::vector<float>{-9, 0, -3, 0, -18, 0, -12, 0, -27, 0, -21, 0}));
  augmentation.brightness = 2;  // erased after the jitter, too
  EXPECT_EQ(Render(image, 1, augmentation, 2, shifted),
            (std::vector<float>{-8, 0, 4, 0, -16, 0, -4, 0, -24, 0, -12, 0}));
}

}  // namespace
}  // namespace ringtail
