#include "data/augmentation/pixel_operation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "data/augmentation/affine.h"

namespace ringtail {
namespace {

constexpr int kLevels = 256, kMaxLevel = 255;
using LevelTable = std::array<uint8_t, kLevels>;

constexpr std::array<std::string_view, kPixelOperations> kNames = {
    "Identity", "ShearX",   "ShearY",    "TranslateX", "TranslateY", "Rotate",       "Brightness",
    "Color",    "Contrast", "Sharpness", "Posterize",  "Solarize",   "AutoContrast", "Equalize"};

// Pillow's rotation: cosine and sine to 15 digits, so that right angles are exact.
AffineMap Rotation(double degrees, const Image& image) {
  constexpr double kDigits = 1e15, kHalfTurn = 180;
  const double angle = -degrees * std::numbers::pi / kHalfTurn;
  const double cosine = std::round(std::cos(angle) * kDigits) / kDigits;
  const double sine = std::round(std::sin(angle) * kDigits) / kDigits;
  const double x = image.width / 2.0, y = image.height / 2.0;
  return {.xx = cosine,
          .xy = sine,
          .x0 = x - cosine * x - sine * y,
          .yx = -sine,
          .yy = cosine,
          .y0 = y + sine * x - cosine * y};
}

AffineMap MapOf(const PixelChange& change, const Image& image) {
  const double m = change.magnitude;
  switch (change.operation) {
    case PixelOperation::kShearX:
      return {.xy = m};
    case PixelOperation::kShearY:
      return {.yx = m};
    case PixelOperation::kTranslateX:
      return {.x0 = -m};
    case PixelOperation::kTranslateY:
      return {.y0 = -m};
    default:
      return Rotation(m, image);
  }
}

int Grey(const uint8_t* rgb) {
  constexpr int kRed = 19595, kGreen = 38470, kBlue = 7471, kHalf = 1 << 15, kBits = 16;
  return (rgb[0] * kRed + rgb[1] * kGreen + rgb[2] * kBlue + kHalf) >> kBits;
}

// `from` + factor (value - from).
uint8_t Blend(int from, int value, float factor) {
  const float blended = static_cast<float>(from) + factor * static_cast<float>(value - from);
  return static_cast<uint8_t>(std::clamp(blended, 0.0F, static_cast<float>(kMaxLevel)));
}

// Blends every pixel from degenerate(pixel, channel).
template <typename Degenerate>
void BlendAll(float factor, Image* image, const Degenerate& degenerate) {
  for (size_t i = 0; i < image->pixels.size(); i += kChannels) {
    uint8_t* const rgb = image->pixels.data() + i;
    const int from = degenerate(rgb);
    for (int c = 0; c < kChannels; ++c) rgb[c] = Blend(from, rgb[c], factor);
  }
}

int MeanGrey(const Image& image) {
  int64_t sum = 0;
  for (size_t i = 0; i < image.pixels.size(); i += kChannels) sum += Grey(&image.pixels[i]);
  const auto count = static_cast<double>(image.pixels.size() / kChannels);
  return static_cast<int>(static_cast<double>(sum) / count + 1.0 / 2);
}

void Sharpen(float factor, const Image& src, Image* dst) {
  constexpr float kWeight = 13, kRound = 0.5F;
  constexpr int kCentreExtra = 4;
  *dst = src;
  for (int32_t y = 1; y + 1 < src.height; ++y) {
    const uint8_t* const rows[] = {src.Row(y - 1), src.Row(y), src.Row(y + 1)};
    for (int32_t i = kChannels; i < (src.width - 1) * kChannels; ++i) {
      int sum = kCentreExtra * rows[1][i];
      for (const uint8_t* row : rows) sum += row[i - kChannels] + row[i] + row[i + kChannels];
      const int smooth = static_cast<int>(static_cast<float>(sum) / kWeight + kRound);
      dst->Row(y)[i] = Blend(smooth, rows[1][i], factor);
    }
  }
}

template <typename Function>
LevelTable TableOf(const Function& function) {
  LevelTable table;
  for (int level = 0; level < kLevels; ++level)
    table[level] = static_cast<uint8_t>(function(level));
  return table;
}

void LookUp(const LevelTable& table, Image* image) {
  for (uint8_t& value : image->pixels) value = table[value];
}

using Histogram = std::array<int64_t, kLevels>;

LevelTable FullContrast(const Histogram& counts) {
  const auto used = [](int64_t count) { return count > 0; };
  const auto low =
      static_cast<int>(std::find_if(counts.begin(), counts.end(), used) - counts.begin());
  const auto high =
      static_cast<int>(counts.rend() - std::find_if(counts.rbegin(), counts.rend(), used) - 1);
  if (high <= low) return TableOf([](int level) { return level; });
  const double scale = static_cast<double>(kMaxLevel) / (high - low), offset = -low * scale;
  return TableOf([&](int level) {
    return std::clamp(static_cast<int>(level * scale + offset), 0, kMaxLevel);
  });
}

LevelTable Equalized(const Histogram& counts) {
  const int64_t all = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  const auto brightest =
      std::find_if(counts.rbegin(), counts.rend(), [](int64_t count) { return count > 0; });
  const int64_t step = (all - *brightest) / kMaxLevel;
  if (step == 0) return TableOf([](int level) { return level; });
  int64_t sum = step / 2;
  return TableOf([&](int level) {
    const int64_t value = std::min<int64_t>(sum / step, kMaxLevel);
    sum += counts[level];
    return value;
  });
}

template <typename Table>
void LookUpChannels(Image* image, const Table& table_of) {
  for (int c = 0; c < kChannels; ++c) {
    Histogram counts{};
    for (size_t i = c; i < image->pixels.size(); i += kChannels) ++counts[image->pixels[i]];
    const LevelTable table = table_of(counts);
    for (size_t i = c; i < image->pixels.size(); i += kChannels) {
      image->pixels[i] = table[image->pixels[i]];
    }
  }
}

}  // namespace

std::string_view PixelOperationName(PixelOperation operation) {
  return kNames[static_cast<size_t>(operation)];
}

void ChangePixels(const PixelChange& change, Image* image, Image* spare) {
  const double m = change.magnitude;
  const auto factor = static_cast<float>(1 + m);
  switch (change.operation) {
    case PixelOperation::kIdentity:
      return;
    case PixelOperation::kShearX:
    case PixelOperation::kShearY:
    case PixelOperation::kTranslateX:
    case PixelOperation::kTranslateY:
    case PixelOperation::kRotate:
      MapImage(*image, MapOf(change, *image), change.bilinear, spare);
      return std::swap(*image, *spare);
    case PixelOperation::kBrightness:
      return BlendAll(factor, image, [](const uint8_t*) { return 0; });
    case PixelOperation::kColor:
      return BlendAll(factor, image, Grey);
    case PixelOperation::kContrast: {
      const int mean = MeanGrey(*image);
      return BlendAll(factor, image, [mean](const uint8_t*) { return mean; });
    }
    case PixelOperation::kSharpness:
      Sharpen(factor, *image, spare);
      return std::swap(*image, *spare);
    case PixelOperation::kPosterize: {
      const int mask = ~((1 << (8 - static_cast<int>(m))) - 1);
      return LookUp(TableOf([mask](int level) { return level & mask; }), image);
    }
    case PixelOperation::kSolarize:
      return LookUp(TableOf([m](int level) { return level < m ? level : kMaxLevel - level; }),
                    image);
    case PixelOperation::kAutoContrast:
      return LookUpChannels(image, FullContrast);
    case PixelOperation::kEqualize:
      return LookUpChannels(image, Equalized);
  }
}

}  // namespace ringtail
