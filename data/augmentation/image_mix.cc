#include "data/augmentation/image_mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"
#include "core/units.h"
#include "data/config_check.h"
#include "data/decoding/image.h"

namespace ringtail {
namespace {

enum Draw : uint64_t { kWhich = 1, kLambda, kPlace };

bool MixesUp(const AugmentConfig& config) { return config.mixup().alpha() > 0; }
bool CutsMix(const AugmentConfig& config) { return config.cutmix().alpha() > 0; }

// In (0, 1]: its logarithm is finite.
double PositiveUniform(Rng* rng) { return 1 - double{rng->Uniform()}; }

// The logarithm of a draw from Gamma(alpha, 1): of Gamma(alpha + 1) times U^(1 / alpha).
double LogGamma(double alpha, Rng* rng) {
  const double d = alpha + 1 - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double normal = rng->Normal(), root = 1 + c * normal;
    if (root <= 0) continue;
    const double v = root * root * root;
    const double accept = normal * normal / 2 + d * (1 - v + std::log(v));
    if (std::log(PositiveUniform(rng)) < accept) {
      return std::log(d * v) + std::log(PositiveUniform(rng)) / alpha;
    }
  }
}

ImageMix DrawMixup(double alpha, RngKey key) {
  Rng rng(key.With(kLambda));
  const double lambda = DrawBeta(alpha, &rng);
  ImageMix mix{.kind = ImageMix::Kind::kMixup,
               .share = static_cast<float>(std::max(lambda, 1 - lambda))};
  return mix.share < 1 ? mix : ImageMix();
}

ImageMix DrawCutmix(double alpha, RngKey key, int32_t image_size) {
  Rng lambda_rng(key.With(kLambda)), place(key.With(kPlace));
  const double side = std::sqrt(1 - DrawBeta(alpha, &lambda_rng));
  const auto cut = static_cast<int32_t>(image_size * side);
  const auto range = [&](int32_t* first, int32_t* count) {
    const auto middle = static_cast<int32_t>(place.Below(image_size));
    *first = std::clamp(middle - cut / 2, 0, image_size);
    *count = std::clamp(middle + cut / 2, 0, image_size) - *first;
  };
  ImageMix mix{.kind = ImageMix::Kind::kCutmix};
  range(&mix.y, &mix.height);
  range(&mix.x, &mix.width);
  const double area = static_cast<double>(image_size) * image_size;
  mix.share = static_cast<float>(1 - static_cast<double>(mix.width) * mix.height / area);
  return mix.share < 1 ? mix : ImageMix();
}

// Not inlined: MixInto and MixPair run the same instructions.
[[gnu::noinline]] void BlendLine(float share, std::span<const float> partner,
                                 std::span<float> image) {
  const float rest = 1 - share;
  for (size_t i = 0; i < image.size(); ++i) image[i] = share * image[i] + rest * partner[i];
}

// Calls fn(offset, count) for each line of the part of the image that changes.
template <typename Fn>
void ForEachLine(const ImageMix& mix, int32_t image_size, const Fn& fn) {
  const bool whole = mix.kind == ImageMix::Kind::kMixup;
  const int64_t size = image_size, x = whole ? 0 : mix.x, y = whole ? 0 : mix.y;
  const int64_t width = whole ? size : mix.width, height = whole ? size : mix.height;
  for (int64_t plane = 0; plane < kChannels; ++plane) {
    for (int64_t line = 0; line < height; ++line) {
      fn(static_cast<size_t>((plane * size + y + line) * size + x), static_cast<size_t>(width));
    }
  }
}

}  // namespace

bool MixesImages(const AugmentConfig& config) { return MixesUp(config) || CutsMix(config); }

double DrawBeta(double alpha, Rng* rng) {
  const double first = LogGamma(alpha, rng), second = LogGamma(alpha, rng);
  return 1 / (1 + std::exp(second - first));
}

ImageMix DrawMix(const AugmentConfig& config, RngKey key, int32_t image_size) {
  if (!MixesImages(config)) return {};
  const bool cuts = CutsMix(config) && (!MixesUp(config) || Rng(key.With(kWhich)).Uniform() <
                                                                config.switch_probability());
  return cuts ? DrawCutmix(config.cutmix().alpha(), key, image_size)
              : DrawMixup(config.mixup().alpha(), key);
}

void MixInto(const ImageMix& mix, int32_t image_size, std::span<const float> partner,
             std::span<float> image) {
  if (mix.kind == ImageMix::Kind::kNone) return;
  ForEachLine(mix, image_size, [&](size_t offset, size_t count) {
    const std::span<const float> from = partner.subspan(offset, count);
    if (mix.kind == ImageMix::Kind::kMixup)
      return BlendLine(mix.share, from, image.subspan(offset, count));
    std::copy(from.begin(), from.end(), image.subspan(offset, count).begin());
  });
}

void MixPair(const ImageMix& mix, int32_t image_size, std::span<float> first,
             std::span<float> second) {
  if (mix.kind == ImageMix::Kind::kNone) return;
  RT_CHECK(image_size <= kMaxImageSize, "an image is at most 1024 pixels wide");
  std::array<float, kMaxImageSize> kept;
  ForEachLine(mix, image_size, [&](size_t offset, size_t count) {
    const std::span<float> a = first.subspan(offset, count), b = second.subspan(offset, count);
    if (mix.kind == ImageMix::Kind::kCutmix) {
      std::swap_ranges(a.begin(), a.end(), b.begin());
      return;
    }
    std::copy(a.begin(), a.end(), kept.begin());
    BlendLine(mix.share, b, a);
    BlendLine(mix.share, std::span<const float>(kept).first(count), b);
  });
}

std::string DescribeMix(const AugmentConfig& config) {
  const std::string mixup = fmt::format("mixup (alpha {:.3g})", config.mixup().alpha());
  const std::string cutmix = fmt::format("cutmix (alpha {:.3g})", config.cutmix().alpha());
  if (!MixesImages(config)) return "";
  if (!CutsMix(config)) return mixup;
  if (!MixesUp(config)) return cutmix;
  return fmt::format("{} or, of {:.3g} % of the pairs, {}", mixup,
                     kPercent * double{config.switch_probability()}, cutmix);
}

}  // namespace ringtail
