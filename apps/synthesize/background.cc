#include "apps/synthesize/background.h"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "apps/synthesize/canvas.h"
#include "apps/synthesize/noise.h"

namespace ringtail {
namespace {

constexpr double kFloorChance = 0.5, kPatternChance = 0.35, kForegroundChance = 0.4;
constexpr int kMaxShapes = 9;

// From one colour to another across the image, with clouds.
cv::Mat DrawGradient(cv::Size size, Rng* rng) {
  const cv::Scalar from = RandomColor(rng), to = RandomColor(rng);
  const float angle = rng->Uniform(0, 6.28F), clouds = rng->Uniform(0, 0.35F);
  const float dx = std::cos(angle) / static_cast<float>(size.width);
  const float dy = std::sin(angle) / static_cast<float>(size.height);
  const cv::Mat noise = SmoothNoise(size, std::max(size.width, size.height) / 6.0, rng);
  const float center_x = static_cast<float>(size.width) / 2;
  const float center_y = static_cast<float>(size.height) / 2;
  cv::Mat image(size, CV_8UC3);
  for (int y = 0; y < size.height; ++y) {
    const float* cloud = noise.ptr<float>(y);
    auto* out = image.ptr<cv::Vec3b>(y);
    for (int x = 0; x < size.width; ++x) {
      const float across =
          dx * (static_cast<float>(x) - center_x) + dy * (static_cast<float>(y) - center_y);
      const float t = std::clamp(0.5F + across + clouds * cloud[x], 0.0F, 1.0F);
      for (int c = 0; c < 3; ++c) {
        out[x][c] = cv::saturate_cast<uchar>(static_cast<float>(from[c] + (to[c] - from[c]) * t));
      }
    }
  }
  return image;
}

Outline RandomShape(Rng* rng) {
  switch (rng->Below(4)) {
    case 0:
      return Ellipse({0, 0}, 1, rng->Uniform(0.3F, 1));
    case 1:  // a triangle
      return {{-1, 0.8}, {1, 0.8}, {rng->Uniform(-0.8F, 0.8F), -1}};
    case 2:  // a drop
      return Smooth({{0, -1}, {0.35, -0.2}, {0.5, 0.6}, {0, 1}, {-0.5, 0.6}, {-0.35, -0.2}});
    default:
      return {{-1, -0.6}, {1, -0.6}, {1, 0.6}, {-1, 0.6}};
  }
}

void DrawShapes(cv::Mat* image, Rng* rng) {
  const int count = static_cast<int>(rng->Below(kMaxShapes + 1));
  for (int i = 0; i < count; ++i) {
    const float x = rng->Uniform(0, static_cast<float>(image->cols));
    const float y = rng->Uniform(0, static_cast<float>(image->rows));
    const float size = rng->Uniform(0.04F, 0.3F) * static_cast<float>(image->cols);
    const float degrees = rng->Uniform(0, 360);
    const Outline shape = RandomShape(rng);
    const cv::Scalar color = RandomColor(rng);
    const float opacity = rng->Uniform(0.4F, 1);
    Canvas(*image, {x, y}, size, degrees, false).Fill(shape, color, opacity);
  }
}

// Stripes, or checks if both directions alternate.
void DrawPattern(cv::Mat* image, Rng* rng) {
  const int width = 6 + static_cast<int>(rng->Below(30));
  const bool checks = Chance(0.5, rng);
  const float strength = rng->Uniform(0.05F, 0.25F), slope = rng->Uniform(-1, 1);
  for (int y = 0; y < image->rows; ++y) {
    auto* row = image->ptr<cv::Vec3b>(y);
    for (int x = 0; x < image->cols; ++x) {
      const int along = x + static_cast<int>(slope * static_cast<float>(y)) + 2 * image->rows;
      const int cell = along / width + (checks ? y / width : 0);
      if (cell % 2 == 0) continue;
      for (int c = 0; c < 3; ++c) {
        row[x][c] = cv::saturate_cast<uchar>(static_cast<float>(row[x][c]) * (1 - strength));
      }
    }
  }
}

void DrawFloor(cv::Mat* image, Rng* rng) {
  const double horizon = rng->Uniform(0.45F, 0.9F) * static_cast<float>(image->rows);
  const double tilt = rng->Uniform(-0.08F, 0.08F) * static_cast<float>(image->rows);
  const double right = image->cols, bottom = image->rows;
  const cv::Scalar color = RandomColor(rng);
  Canvas(*image, {0, 0}, 1, 0, false)
      .Fill({{0, horizon + tilt}, {right, horizon - tilt}, {right, bottom}, {0, bottom}}, color,
            rng->Uniform(0.5F, 1));
}

}  // namespace

cv::Mat DrawBackground(cv::Size size, Rng* rng) {
  cv::Mat image = DrawGradient(size, rng);
  if (Chance(kFloorChance, rng)) DrawFloor(&image, rng);
  if (Chance(kPatternChance, rng)) DrawPattern(&image, rng);
  DrawShapes(&image, rng);
  const double focus = rng->Uniform(0, 2.5F);  // out of it, the animal in it
  if (focus > 0.5) cv::GaussianBlur(image, image, {0, 0}, focus);
  return image;
}

void DrawForeground(double head_pixels, cv::Mat* image, Rng* rng) {
  if (!Chance(kForegroundChance, rng)) return;
  const int stalks = 1 + static_cast<int>(rng->Below(3));
  for (int i = 0; i < stalks; ++i) {
    const float x = rng->Uniform(0, static_cast<float>(image->cols));
    const float y = rng->Uniform(0, static_cast<float>(image->rows));
    const double width = rng->Uniform(0.1F, 0.4F), bend = rng->Uniform(-2, 2);
    const double length = rng->Uniform(1, 5);
    const Outline stalk = Ribbon({{0, length}, {0.3 * bend, 0}, {bend, -length}}, width, width / 3);
    const float degrees = rng->Uniform(0, 360);
    Canvas(*image, {x, y}, head_pixels, degrees, false).Fill(stalk, RandomColor(rng));
  }
}

}  // namespace ringtail
