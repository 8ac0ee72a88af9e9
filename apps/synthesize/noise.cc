#include "apps/synthesize/noise.h"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

namespace ringtail {

cv::Mat WhiteNoise(cv::Size size, int channels, Rng* rng) {
  cv::Mat noise(size, CV_32FC(channels));
  for (int y = 0; y < noise.rows; ++y) {
    float* row = noise.ptr<float>(y);
    const int count = noise.cols * channels;
    for (int x = 0; x < count; x += 4) {  // four values of 8 bits from each draw
      uint32_t bits = rng->Bits();
      for (int k = x; k < std::min(x + 4, count); ++k, bits >>= 8) {
        row[k] = static_cast<float>(bits & 0xFF) / 127.5F - 1;
      }
    }
  }
  return noise;
}

cv::Mat SmoothNoise(cv::Size size, double grain_pixels, Rng* rng) {
  // Coarse white noise, enlarged; cropped at a random place so that hills do not sit on a grid.
  const double grain = std::max(grain_pixels, 1.0);
  const cv::Size coarse(static_cast<int>(std::ceil(size.width / grain)) + 2,
                        static_cast<int>(std::ceil(size.height / grain)) + 2);
  cv::Mat field;
  const cv::Size fine(static_cast<int>(std::ceil(coarse.width * grain)),
                      static_cast<int>(std::ceil(coarse.height * grain)));
  cv::resize(WhiteNoise(coarse, 1, rng), field, fine, 0, 0, cv::INTER_CUBIC);
  const int x = static_cast<int>(rng->Below(fine.width - size.width + 1));
  const int y = static_cast<int>(rng->Below(fine.height - size.height + 1));
  return field(cv::Rect({x, y}, size));
}

cv::Scalar RandomColor(Rng* rng) {
  const double b = rng->Uniform(0, 255), g = rng->Uniform(0, 255), r = rng->Uniform(0, 255);
  const double grey = 0.3 * r + 0.6 * g + 0.1 * b;
  return Mixed({b, g, r}, {grey, grey, grey}, rng->Uniform(0, 0.8F));
}

cv::Scalar Jittered(cv::Scalar color, double by, Rng* rng) {
  for (int c = 0; c < 3; ++c) {
    const float move = rng->Uniform(static_cast<float>(-by), static_cast<float>(by));
    color[c] = std::clamp(color[c] + move, 0.0, 255.0);
  }
  return color;
}

cv::Scalar Mixed(const cv::Scalar& a, const cv::Scalar& b, double fraction_of_b) {
  return a * (1 - fraction_of_b) + b * fraction_of_b;
}

bool Chance(double probability, Rng* rng) { return rng->Uniform() < probability; }

}  // namespace ringtail
