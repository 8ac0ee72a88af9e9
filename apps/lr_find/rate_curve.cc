#include "apps/lr_find/rate_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text/counted.h"

namespace ringtail {
namespace {

constexpr double kKeep = 0.98;      // of the mean before
constexpr double kDivergence = 4;   // times the lowest
constexpr int64_t kFirstPart = 10;  // one part of so many is cut at the start
constexpr int64_t kCutAtEnd = 5;

// fastai's cut. Empty if nothing remains.
std::span<const RatePoint> Considered(const RateRange& range, std::span<const RatePoint> points) {
  const int64_t cut = range.steps / kFirstPart;
  const int64_t left = std::ssize(points) - cut - kCutAtEnd;
  if (left <= 0) return {};
  return points.subspan(static_cast<size_t>(cut), static_cast<size_t>(left));
}

// The longest sequence of points, not necessarily neighbours, with falling losses: where it ends,
// and how many points it has. The first such end counts.
struct Descent {
  int64_t end = 0, length = 1;
};
Descent LongestDescent(std::span<const RatePoint> points) {
  std::vector<int64_t> lengths(points.size(), 1);
  Descent longest;
  for (size_t i = 0; i < points.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const bool falls = points[i].smoothed < points[j].smoothed;
      if (falls) lengths[i] = std::max(lengths[i], lengths[j] + 1);
    }
    if (lengths[i] > longest.length) longest = {static_cast<int64_t>(i), lengths[i]};
  }
  return longest;
}

double SteepestRate(std::span<const RatePoint> points) {
  double steepest = 0, rate = points.front().rate;
  for (size_t i = 0; i + 1 < points.size(); ++i) {
    const double slope = (points[i + 1].smoothed - points[i].smoothed) /
                         (std::log(points[i + 1].rate) - std::log(points[i].rate));
    if (slope >= steepest) continue;
    steepest = slope;
    rate = points[i].rate;
  }
  return rate;
}

}  // namespace

double RateOfStep(const RateRange& range, int64_t step) {
  const double fraction = static_cast<double>(step) / static_cast<double>(range.steps);
  return range.from * std::pow(range.to / range.from, fraction);
}

bool RateCurve::Add(double loss) {
  const int64_t step = std::ssize(points_);
  if (!std::isfinite(loss)) {
    diverged_ = true;
    return false;
  }
  mean_ = kKeep * mean_ + (1 - kKeep) * loss;
  const double smoothed = mean_ / (1 - std::pow(kKeep, static_cast<double>(step + 1)));
  points_.push_back({.rate = RateOfStep(range_, step), .loss = loss, .smoothed = smoothed});
  if (step == 0 || smoothed < lowest_) lowest_ = smoothed;
  diverged_ = smoothed > kDivergence * lowest_;
  return !diverged_ && step + 1 < range_.steps;
}

StatusOr<RateSuggestion> SuggestRate(const RateRange& range, std::span<const RatePoint> points) {
  const std::span<const RatePoint> considered = Considered(range, points);
  if (std::ssize(points) < kFewestPoints || std::ssize(considered) < kFewestPoints / 2) {
    return FailedPrecondition(fmt::format(
        "the loss ran away after {}, at a rate of {:.2g}: too few to suggest a rate; begin lower "
        "(--from {:.1g}), or take more steps (--steps)",
        Counted(std::ssize(points), "step"), RateOfStep(range, std::ssize(points)),
        range.from / 100));
  }
  const Descent descent = LongestDescent(considered);
  if (descent.length < 2) {
    return FailedPrecondition(fmt::format(
        "the loss falls at no rate from {:.2g} to {:.2g}: no rate can be suggested; try another "
        "range (--from, --to), more steps (--steps) or a larger batch (train.batch)",
        points.front().rate, points.back().rate));
  }
  // fastai's arithmetic, which counts the sequence's points back from its end as if they were
  // neighbours.
  const int64_t end = descent.end, length = descent.length;
  const auto third = static_cast<double>(length) / 3;
  const int64_t start = end - length;
  const int64_t middle = start + static_cast<int64_t>(third) + static_cast<int64_t>(third / 2);
  const double before = considered[std::max<int64_t>(start, 0)].smoothed;
  return RateSuggestion{.valley = considered[std::max<int64_t>(middle, 0)].rate,
                        .steepest = SteepestRate(considered),
                        .fall = (before - considered[end].smoothed) / before};
}

std::string DrawCurve(std::span<const RatePoint> points, int width, int height) {
  constexpr double kMostAboveFirst = 1.5;
  if (points.empty()) return "";
  double low = points[0].smoothed, high = low;
  for (const RatePoint& point : points) {
    low = std::min(low, point.smoothed);
    high = std::max(high, std::min(point.smoothed, kMostAboveFirst * points[0].smoothed));
  }
  const double first = std::log(points.front().rate), last = std::log(points.back().rate);
  std::vector<std::string> lines(static_cast<size_t>(height), std::string(width, ' '));
  for (const RatePoint& point : points) {
    const double x = last > first ? (std::log(point.rate) - first) / (last - first) : 0;
    const double y = high > low ? (std::min(point.smoothed, high) - low) / (high - low) : 0;
    const auto column = static_cast<size_t>(std::lround(x * (width - 1)));
    const auto line = static_cast<size_t>(std::lround((1 - y) * (height - 1)));
    lines[line][column] = '*';
  }
  std::string text;
  for (int i = 0; i < height; ++i) {
    const std::string label = i == 0            ? fmt::format("{:.3g}", high)
                              : i == height - 1 ? fmt::format("{:.3g}", low)
                                                : "";
    text += fmt::format("{:>8} |{}\n", label, lines[i]);
  }
  const std::string from = fmt::format("{:.2g}", points.front().rate);
  const std::string to = fmt::format("{:.2g}", points.back().rate);
  const int gap = std::max(width - static_cast<int>(from.size()), 0);
  return text + fmt::format("{:>8} +{}\n{:>8}  {}{:>{}}\n", "", std::string(width, '-'), "", from,
                            to, gap);
}

}  // namespace ringtail
