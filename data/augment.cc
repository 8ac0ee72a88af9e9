#include "data/augment.h"

#include <algorithm>
#include <cmath>

namespace ringtail {
namespace {

constexpr int kCropTries = 10;

int32_t Round(double value) { return static_cast<int32_t>(std::lround(value)); }

CropRectangle Centred(int32_t crop_width, int32_t crop_height, int32_t width, int32_t height) {
  return {(width - crop_width) / 2, (height - crop_height) / 2, crop_width, crop_height};
}

// If no draw fits: as much of the image as the aspect limits allow.
CropRectangle LargestCrop(const AugmentConfig& config, int32_t width, int32_t height) {
  const double aspect = static_cast<double>(width) / height;
  int32_t crop_width = width, crop_height = height;
  if (aspect < config.min_aspect()) crop_height = Round(width / double{config.min_aspect()});
  if (aspect > config.max_aspect()) crop_width = Round(height * double{config.max_aspect()});
  return Centred(std::clamp(crop_width, 1, width), std::clamp(crop_height, 1, height), width,
                 height);
}

CropRectangle DrawCrop(const AugmentConfig& config, Rng* rng, int32_t width, int32_t height) {
  const double area = static_cast<double>(width) * height;
  const float low = std::log(config.min_aspect()), high = std::log(config.max_aspect());
  for (int i = 0; i < kCropTries; ++i) {
    const double drawn_area = area * rng->Uniform(config.min_area(), config.max_area());
    const double aspect = std::exp(double{rng->Uniform(low, high)});
    const int32_t crop_width = Round(std::sqrt(drawn_area * aspect));
    const int32_t crop_height = Round(std::sqrt(drawn_area / aspect));
    if (crop_width < 1 || crop_height < 1 || crop_width > width || crop_height > height) continue;
    const auto y = static_cast<int32_t>(rng->Below(height - crop_height + 1));
    const auto x = static_cast<int32_t>(rng->Below(width - crop_width + 1));
    return {x, y, crop_width, crop_height};
  }
  return LargestCrop(config, width, height);
}

// One key per draw, so that draws do not depend on each other; data/augmentation/trivial_augment.cc
// has those from 6 on.
enum Draw : uint64_t { kCrop = 1, kFlip, kBrightness, kContrast, kSaturation };

float DrawFactor(RngKey key, Draw draw, float spread) {
  return Rng(key.With(draw)).Uniform(1 - spread, 1 + spread);
}

// The shrunk image's pixel range [first, first + count) nearest to the image's range
// [offset, offset + size).
struct Range {
  int32_t first, count;
};
Range Shrink(int32_t offset, int32_t size, int32_t denominator, int32_t shrunk_side) {
  const int32_t count = std::clamp(Round(static_cast<double>(size) / denominator), 1, shrunk_side);
  const int32_t first = Round(static_cast<double>(offset) / denominator);
  return {std::min(first, shrunk_side - count), count};
}

}  // namespace

Augmentation DrawAugmentation(const AugmentConfig& config, RngKey key, int32_t width,
                              int32_t height, int32_t image_size) {
  Augmentation augmentation;
  Rng crop_rng(key.With(kCrop));
  augmentation.crop = DrawCrop(config, &crop_rng, width, height);
  augmentation.flip = Rng(key.With(kFlip)).Uniform() < config.flip_probability();
  augmentation.brightness = DrawFactor(key, kBrightness, config.brightness());
  augmentation.contrast = DrawFactor(key, kContrast, config.contrast());
  augmentation.saturation = DrawFactor(key, kSaturation, config.saturation());
  augmentation.change = DrawPixelChange(config, key, image_size);
  augmentation.erased = DrawErasedRectangle(config, key, image_size);
  return augmentation;
}

Augmentation CentreCrop(const EvaluationCropConfig& config, bool flip, int32_t width,
                        int32_t height) {
  const int32_t shorter = std::min(width, height);
  const int32_t side = std::clamp(Round(shorter * double{config.crop_fraction()}), 1, shorter);
  Augmentation augmentation;
  augmentation.crop = Centred(side, side, width, height);
  augmentation.flip = flip;
  return augmentation;
}

Region RegionOfCrop(const CropRectangle& crop, const ImageHeader& header, int32_t image_size) {
  int32_t denominator = 1;
  while (std::min(crop.width, crop.height) / (2 * denominator) >= image_size) denominator *= 2;
  const int32_t width = header.upright_width(), height = header.upright_height();
  const Region whole = WholeRegion(width, height, denominator);
  Range across = Shrink(crop.x, crop.width, denominator, whole.width);
  Range down = Shrink(crop.y, crop.height, denominator, whole.height);
  // Back to the stored axes: EXIF's flips are of the upright axes, which transposing swaps.
  int32_t stored_width = whole.width, stored_height = whole.height;
  bool reversed_x = header.orientation.flip_x, reversed_y = header.orientation.flip_y;
  if (header.orientation.transposed) {
    std::swap(across, down);
    std::swap(stored_width, stored_height);
    std::swap(reversed_x, reversed_y);
  }
  if (reversed_x) across.first = stored_width - across.first - across.count;
  if (reversed_y) down.first = stored_height - down.first - down.count;
  return {denominator, across.first, down.first, across.count, down.count};
}

}  // namespace ringtail
