#include "dist/planner/slowest_of.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/median.h"

namespace ringtail {
namespace {

constexpr double kRange = 8;  // beyond, the normal distribution is nothing
constexpr int kPoints = 400;

double Cumulative(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

}  // namespace

// Of a variable whose distribution is F: the integral of 1 - F over x > 0, less that of F over x < 0.
double SlowestOf(int64_t n) {
  const auto ranks = static_cast<double>(n);
  constexpr double kWidth = kRange / kPoints;
  double sum = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double x = (i + 0.5) * kWidth;
    sum += 1 - std::pow(Cumulative(x), ranks) - std::pow(Cumulative(-x), ranks);
  }
  return sum * kWidth;
}

double DeviationOfRanks(std::span<const std::vector<double>> times) {
  if (times.size() < 2) return 0;
  const auto ranks = static_cast<int64_t>(times.size());
  std::vector<double> medians, waits;
  medians.reserve(times.size());
  waits.reserve(times.front().size());
  for (const std::vector<double>& of_rank : times) medians.push_back(Median(of_rank));
  for (size_t step = 0; step < times.front().size(); ++step) {
    double slowest = 0, sum = 0;
    for (size_t rank = 0; rank < times.size(); ++rank) {
      const double share = times[rank][step] / medians[rank];
      slowest = std::max(slowest, share);
      sum += share;
    }
    waits.push_back(slowest / (sum / static_cast<double>(ranks)) - 1);
  }
  return Median(std::move(waits)) / SlowestOf(ranks);
}

double DelayOfRounds(int64_t n) { return 2 - 1 / static_cast<double>(n); }

}  // namespace ringtail
