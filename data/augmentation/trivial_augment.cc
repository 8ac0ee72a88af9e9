#include "data/augmentation/trivial_augment.h"

#include <fmt/format.h>

#include <cmath>

#include "core/text/counted.h"
#include "core/units.h"
#include "data/augmentation/image_mix.h"

namespace ringtail {
namespace {

// One key per draw; data/augment.cc has those up to 5.
enum Draw : uint64_t { kOperation = 6, kBin, kSign, kErases, kRectangle };

// `most` at the last bin.
double Linear(double most, int bin) { return most * bin / (kMagnitudeBins - 1); }

}  // namespace

double MagnitudeOfBin(PixelOperation operation, int bin, bool negative, int32_t image_size) {
  constexpr double kShear = 0.99, kDegrees = 135, kFactor = 0.99, kLevel = 255;
  constexpr double kPixels = 32, kPixelsOf = 224;
  constexpr int kBits = 8, kFewerBits = 6;
  const double sign = negative ? -1 : 1;
  switch (operation) {
    case PixelOperation::kShearX:
    case PixelOperation::kShearY:
      return sign * Linear(kShear, bin);
    case PixelOperation::kTranslateX:
    case PixelOperation::kTranslateY:
      return sign * std::floor(Linear(kPixels, bin) * image_size / kPixelsOf);
    case PixelOperation::kRotate:
      return sign * Linear(kDegrees, bin);
    case PixelOperation::kBrightness:
    case PixelOperation::kColor:
    case PixelOperation::kContrast:
    case PixelOperation::kSharpness:
      return sign * Linear(kFactor, bin);
    case PixelOperation::kPosterize:  // halves to even, as torch rounds
      return kBits - std::nearbyint(Linear(kFewerBits, bin));
    case PixelOperation::kSolarize:
      return kLevel - Linear(kLevel, bin);
    case PixelOperation::kIdentity:
    case PixelOperation::kAutoContrast:
    case PixelOperation::kEqualize:
      return 0;
  }
  return 0;
}

PixelChange DrawPixelChange(const AugmentConfig& config, RngKey key, int32_t image_size) {
  if (config.trivial_augment() == AugmentConfig::OFF) return {};
  const auto operation =
      static_cast<PixelOperation>(Rng(key.With(kOperation)).Below(kPixelOperations));
  const auto bin = static_cast<int>(Rng(key.With(kBin)).Below(kMagnitudeBins));
  const bool negative = Rng(key.With(kSign)).Below(2) == 1;
  return {.operation = operation,
          .magnitude = MagnitudeOfBin(operation, bin, negative, image_size),
          .bilinear = config.trivial_augment() == AugmentConfig::BILINEAR};
}

ErasedRectangle DrawErasedRectangle(const AugmentConfig& config, RngKey key, int32_t image_size) {
  constexpr int kTries = 10;
  constexpr float kLeastArea = 0.02F, kMostArea = 0.33F, kLeastAspect = 0.3F, kMostAspect = 3.3F;
  if (Rng(key.With(kErases)).Uniform() >= config.erasing()) return {};
  Rng rng(key.With(kRectangle));
  const double all = static_cast<double>(image_size) * image_size;
  for (int i = 0; i < kTries; ++i) {
    const double area = all * rng.Uniform(kLeastArea, kMostArea);
    const double aspect =
        std::exp(double{rng.Uniform(std::log(kLeastAspect), std::log(kMostAspect))});
    const auto height = static_cast<int32_t>(std::lround(std::sqrt(area * aspect)));
    const auto width = static_cast<int32_t>(std::lround(std::sqrt(area / aspect)));
    if (height < 1 || width < 1 || height >= image_size || width >= image_size) continue;
    const auto y = static_cast<int32_t>(rng.Below(image_size - height + 1));
    const auto x = static_cast<int32_t>(rng.Below(image_size - width + 1));
    return {x, y, width, height};
  }
  return {};
}

std::string DescribeAugmentations(const AugmentConfig& config) {
  std::string text;
  if (config.trivial_augment() != AugmentConfig::OFF) {
    const bool bilinear = config.trivial_augment() == AugmentConfig::BILINEAR;
    text = fmt::format("TrivialAugment ({})", bilinear ? "bilinear" : "nearest pixels");
  }
  if (config.erasing() > 0) {
    text += fmt::format("{}random erasing of {:.3g} % of the images", text.empty() ? "" : ", ",
                        kPercent * double{config.erasing()});
  }
  if (const std::string mixed = DescribeMix(config); !mixed.empty()) {
    text += (text.empty() ? "" : ", ") + mixed;
  }
  if (config.ramp_epochs() > 0) {
    text += fmt::format("{}crops and colours from {:.3g} to 100 % of their strength over {}",
                        text.empty() ? "" : ", ", kPercent * double{config.ramp_start()},
                        Counted(config.ramp_epochs(), "epoch"));
  }
  return text;
}

}  // namespace ringtail
