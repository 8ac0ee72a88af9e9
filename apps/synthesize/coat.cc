#include "apps/synthesize/coat.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <opencv2/imgproc.hpp>

#include "apps/synthesize/noise.h"

namespace ringtail {
namespace {

// BGR: black, charcoal, grey, silver, white, cream, tan, ginger, brown, chocolate.
const std::array<cv::Scalar, 10> kFurColors = {{{40, 38, 36},
                                                {72, 68, 66},
                                                {122, 118, 116},
                                                {182, 178, 172},
                                                {236, 238, 240},
                                                {176, 208, 230},
                                                {120, 166, 204},
                                                {58, 124, 214},
                                                {52, 86, 132},
                                                {38, 52, 84}}};
// Green, yellow, amber, blue, brown.
const std::array<cv::Scalar, 5> kIrisColors = {
    {{96, 186, 126}, {78, 208, 222}, {40, 142, 216}, {216, 168, 92}, {46, 82, 128}}};
const cv::Scalar kWhite(244, 246, 248), kPink(160, 150, 226), kBlack(30, 28, 30);
constexpr double kFurJitter = 22, kGrain = 0.09;

template <size_t n>
cv::Scalar Pick(const std::array<cv::Scalar, n>& colors, double jitter, Rng* rng) {
  const cv::Scalar& color = colors[rng->Below(n)];
  return Jittered(color, jitter, rng);
}

// How much of the second colour shows where: 0 .. 1.
cv::Mat DrawMarkings(cv::Size size, double head_pixels, Rng* rng) {
  enum Kind { kPlain, kStripes, kPatches, kSpots, kKinds };
  cv::Mat amount = cv::Mat::zeros(size, CV_32F);
  const uint64_t kind = rng->Below(kKinds);
  if (kind == kPlain) return amount;
  constexpr float kStripesPerHead = 4, kWarp = 1.6F, kSharpness = 2.5F;
  const float angle = rng->Uniform(-0.6F, 0.6F), phase = rng->Uniform(0, 6);
  const auto wave = static_cast<float>(kStripesPerHead * std::numbers::pi / head_pixels);
  const double grain = kind == kPatches ? 0.9 : 0.35;
  const cv::Mat noise = SmoothNoise(size, grain * head_pixels, rng);
  for (int y = 0; y < size.height; ++y) {
    const float* hill = noise.ptr<float>(y);
    float* out = amount.ptr<float>(y);
    for (int x = 0; x < size.width; ++x) {
      const float along =
          static_cast<float>(x) * std::cos(angle) + static_cast<float>(y) * std::sin(angle);
      const float field = kind == kStripes ? std::sin(wave * along + phase + kWarp * hill[x])
                                           : 2 * hill[x] - (kind == kSpots ? 0.6F : 0.0F);
      out[x] = std::clamp(kSharpness * field, 0.0F, 1.0F);
    }
  }
  return amount;
}

// a where amount is 0, b where it is 1, darkened and lightened by the grain.
cv::Mat Paint(const cv::Scalar& a, const cv::Scalar& b, const cv::Mat& amount,
              const cv::Mat& grain) {
  cv::Mat texture(amount.size(), CV_8UC3);
  for (int y = 0; y < texture.rows; ++y) {
    const float* t = amount.ptr<float>(y);
    const float* g = grain.ptr<float>(y);
    auto* out = texture.ptr<cv::Vec3b>(y);
    for (int x = 0; x < texture.cols; ++x) {
      const float light = 1 + static_cast<float>(kGrain) * g[x];
      for (int c = 0; c < 3; ++c) {
        const auto from = static_cast<float>(a[c]), to = static_cast<float>(b[c]);
        out[x][c] = cv::saturate_cast<uchar>((from + (to - from) * t[x]) * light);
      }
    }
  }
  return texture;
}

}  // namespace

Coat DrawCoat(cv::Size size, double head_pixels, Rng* rng) {
  const cv::Scalar base = Pick(kFurColors, kFurJitter, rng);
  const cv::Scalar second = Pick(kFurColors, kFurJitter, rng);
  const cv::Scalar light = Mixed(base, kWhite, rng->Uniform(0.3F, 0.9F));
  cv::Mat markings = DrawMarkings(size, head_pixels, rng);
  markings *= rng->Uniform(0.5F, 1);
  const cv::Mat grain = SmoothNoise(size, std::max(1.5, head_pixels / 20), rng);
  Coat coat;
  coat.fur = Paint(base, second, markings, grain);
  coat.pale = Paint(light, second, markings * 0.25, grain);
  coat.contour = Mixed(base, kBlack, 0.75);
  coat.iris = Pick(kIrisColors, 25, rng);
  coat.nose = Chance(0.5, rng) ? Jittered(kBlack, 20, rng) : Jittered(kPink * 0.8, 25, rng);
  const cv::Scalar skin = Jittered(kPink, 25, rng);
  coat.inner_ear = Mixed(skin, base, rng->Uniform(0.1F, 0.6F));
  coat.mouth = Jittered({110, 96, 220}, 20, rng);
  coat.collar = RandomColor(rng);
  coat.has_collar = Chance(0.35, rng);
  return coat;
}

}  // namespace ringtail
