#include "dist/planner/slowest_of.h"

#include <cmath>
#include <numbers>

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

double DelayOfRounds(int64_t n) { return 2 - 1 / static_cast<double>(n); }

}  // namespace ringtail
