#include "apps/synthesize/canvas.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <opencv2/imgproc.hpp>

namespace ringtail {
namespace {

constexpr int kSubpixelBits = 4;
constexpr double kSubpixels = 1 << kSubpixelBits;
constexpr int kMaxCoordinate = 1 << 20;  // far outside of any image, far from overflow
constexpr double kContourWidth = 0.035;  // of a head's radius
constexpr double kEdgeLight = 0.5;       // of the light in the middle
constexpr double kRoundness = 0.4;  // how far in the edge's shade reaches, of the shape's width

int ToFixed(double pixels) {
  return static_cast<int>(
      std::lround(std::clamp(pixels * kSubpixels, -1.0 * kMaxCoordinate, 1.0 * kMaxCoordinate)));
}

cv::Matx23d MakeMap(cv::Point2d origin, double scale, double degrees, bool flip) {
  const double angle = degrees * std::numbers::pi / 180, mirror = flip ? -1 : 1;
  const double c = scale * std::cos(angle), s = scale * std::sin(angle);
  return {mirror * c, -s, origin.x, mirror * s, c, origin.y};
}

// The rectangle of whole pixels around `polygon` that lies inside `image`.
cv::Rect PixelBounds(const std::vector<cv::Point>& polygon, cv::Size image) {
  const cv::Rect fixed = cv::boundingRect(polygon);
  const cv::Point first(fixed.x >> kSubpixelBits, fixed.y >> kSubpixelBits);
  const cv::Point last((fixed.br().x >> kSubpixelBits) + 2, (fixed.br().y >> kSubpixelBits) + 2);
  return cv::Rect(first - cv::Point(1, 1), last) & cv::Rect({}, image);
}

// 255 inside of `polygon`, smoothed at its edge, over the pixels of `bounds`.
cv::Mat MaskOf(std::vector<cv::Point> polygon, cv::Rect bounds) {
  for (cv::Point& p : polygon) p -= bounds.tl() * static_cast<int>(kSubpixels);
  cv::Mat mask = cv::Mat::zeros(bounds.size(), CV_8U);
  cv::fillPoly(mask, std::vector{polygon}, 255, cv::LINE_AA, kSubpixelBits);
  return mask;
}

// image += mask (source * light - image), pixel by pixel.
void Blend(const cv::Mat& mask, const cv::Mat& light, const cv::Mat& source, cv::Mat image) {
  for (int y = 0; y < mask.rows; ++y) {
    const uchar* m = mask.ptr(y);
    const float* l = light.ptr<float>(y);
    const auto* from = source.ptr<cv::Vec3b>(y);
    auto* to = image.ptr<cv::Vec3b>(y);
    for (int x = 0; x < mask.cols; ++x) {
      if (m[x] == 0) continue;
      const float alpha = static_cast<float>(m[x]) / 255;
      for (int c = 0; c < 3; ++c) {
        const float lit = std::min(static_cast<float>(from[x][c]) * l[x], 255.0F);
        to[x][c] =
            cv::saturate_cast<uchar>(static_cast<float>(to[x][c]) * (1 - alpha) + lit * alpha);
      }
    }
  }
}

}  // namespace

Canvas::Canvas(const cv::Mat& image, cv::Point2d origin_pixels, double scale, double degrees,
               bool flip)
    : image_(image), map_(MakeMap(origin_pixels, scale, degrees, flip)), scale_(scale) {}

Canvas Canvas::At(cv::Point2d origin, double scale, double degrees) const {
  const cv::Matx23d inner = MakeMap(origin, scale, degrees, false);
  const cv::Matx33d inner_square(inner(0, 0), inner(0, 1), inner(0, 2),  //
                                 inner(1, 0), inner(1, 1), inner(1, 2), 0, 0, 1);
  Canvas canvas = *this;
  canvas.map_ = map_ * inner_square;
  canvas.scale_ = scale_ * scale;
  return canvas;
}

std::vector<cv::Point> Canvas::ToPixels(const Outline& outline) const {
  std::vector<cv::Point> pixels;
  for (const cv::Point2d& p : outline) {
    pixels.emplace_back(ToFixed(map_(0, 0) * p.x + map_(0, 1) * p.y + map_(0, 2)),
                        ToFixed(map_(1, 0) * p.x + map_(1, 1) * p.y + map_(1, 2)));
  }
  return pixels;
}

void Canvas::Fill(const Outline& outline, const cv::Scalar& color, double opacity) const {
  const std::vector<cv::Point> polygon = ToPixels(outline);
  const cv::Rect bounds = PixelBounds(polygon, image_.size());
  if (bounds.empty()) return;
  const cv::Mat mask = MaskOf(polygon, bounds) * opacity;
  const cv::Mat light(bounds.size(), CV_32F, cv::Scalar(1));
  Blend(mask, light, cv::Mat(bounds.size(), CV_8UC3, color), image_(bounds));
}

void Canvas::FillFur(const Outline& outline, const cv::Mat& texture, double lightness,
                     const cv::Scalar& contour, Contour closing) const {
  const std::vector<cv::Point> polygon = ToPixels(outline);
  const cv::Rect bounds = PixelBounds(polygon, image_.size());
  if (bounds.empty()) return;
  const cv::Mat mask = MaskOf(polygon, bounds);
  const int width = 1 + static_cast<int>(kRoundness * std::min(bounds.width, bounds.height));
  cv::Mat depth, light;  // the blurred mask falls towards the edge, as light on a round shape does
  cv::blur(mask, depth, {width, width}, {-1, -1}, cv::BORDER_CONSTANT);
  depth.convertTo(light, CV_32F, lightness * (1 - kEdgeLight) / 255, lightness * kEdgeLight);
  Blend(mask, light, texture(bounds), image_(bounds));
  Outline line = outline;
  if (closing == Contour::kClosed) line.push_back(outline.front());
  Stroke(line, kContourWidth, contour);
}

void Canvas::Stroke(const Outline& path, double width, const cv::Scalar& color) const {
  const int thickness = std::max(1, static_cast<int>(std::lround(width * scale_)));
  cv::polylines(image_, std::vector{ToPixels(path)}, false, color, thickness, cv::LINE_AA,
                kSubpixelBits);
}

}  // namespace ringtail
