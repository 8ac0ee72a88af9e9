#include <algorithm>
#include <cmath>
#include <numbers>

#include "apps/synthesize/canvas.h"

namespace ringtail {
namespace {

constexpr int kEllipseCorners = 36;
constexpr int kCurvePoints = 8;  // between two corners

// The curve from b to c at t in 0 .. 1, with a and d as its neighbours.
cv::Point2d CatmullRom(cv::Point2d a, cv::Point2d b, cv::Point2d c, cv::Point2d d, double t) {
  return 0.5 * (2 * b + t * (c - a) + t * t * (2 * a - 5 * b + 4 * c - d) +
                t * t * t * (3 * b - a - 3 * c + d));
}

}  // namespace

Outline Ellipse(cv::Point2d center, double radius_x, double radius_y, double degrees) {
  const double angle = degrees * std::numbers::pi / 180;
  Outline outline;
  for (int i = 0; i < kEllipseCorners; ++i) {
    const double t = 2 * std::numbers::pi * i / kEllipseCorners;
    const double x = radius_x * std::cos(t), y = radius_y * std::sin(t);
    outline.emplace_back(center.x + x * std::cos(angle) - y * std::sin(angle),
                         center.y + x * std::sin(angle) + y * std::cos(angle));
  }
  return outline;
}

Outline Smooth(const Outline& corners) {
  const size_t n = corners.size();
  Outline outline;
  for (size_t i = 0; i < n; ++i) {
    for (int k = 0; k < kCurvePoints; ++k) {
      outline.push_back(CatmullRom(corners[(i + n - 1) % n], corners[i], corners[(i + 1) % n],
                                   corners[(i + 2) % n], static_cast<double>(k) / kCurvePoints));
    }
  }
  return outline;
}

Outline SmoothPath(const Outline& corners) {
  const size_t n = corners.size();
  Outline path;
  for (size_t i = 0; i + 1 < n; ++i) {
    for (int k = 0; k < kCurvePoints; ++k) {
      path.push_back(CatmullRom(corners[i == 0 ? 0 : i - 1], corners[i], corners[i + 1],
                                corners[std::min(i + 2, n - 1)],
                                static_cast<double>(k) / kCurvePoints));
    }
  }
  path.push_back(corners.back());
  return path;
}

Outline Ribbon(const Outline& corners, double from, double to) {
  constexpr int kCapPoints = 6;
  const Outline path = SmoothPath(corners);
  const size_t last = path.size() - 1;
  Outline left, right;
  cv::Point2d normal, along;
  for (size_t i = 0; i <= last; ++i) {
    along = path[std::min(i + 1, last)] - path[i == 0 ? 0 : i - 1];
    along /= std::max(cv::norm(along), 1e-9);
    normal = {-along.y, along.x};
    const double half_width = (from + (to - from) * static_cast<double>(i) / last) / 2;
    left.push_back(path[i] + half_width * normal);
    right.push_back(path[i] - half_width * normal);
  }
  for (int k = 1; k < kCapPoints; ++k) {
    const double t = std::numbers::pi * k / kCapPoints;
    left.push_back(path[last] + to / 2 * (std::cos(t) * normal + std::sin(t) * along));
  }
  left.insert(left.end(), right.rbegin(), right.rend());
  return left;
}

Outline Mirrored(Outline outline) {
  for (cv::Point2d& p : outline) p.x = -p.x;
  return outline;
}

}  // namespace ringtail
