#include "core/lane_sums.h"

#include <array>
#include <cmath>
#include <cstddef>

namespace ringtail {
namespace {

constexpr size_t kLanes = 16;

template <typename Term>
double Sum(std::span<const float> a, Term term) {
  std::array<double, kLanes> lanes{};
  size_t i = 0;
  for (; i + kLanes <= a.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(a[i + lane]);
  }
  for (size_t lane = 0; i + lane < a.size(); ++lane) lanes[lane] += term(a[i + lane]);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

double SumOfMagnitudes(std::span<const float> a) {
  return Sum(a, [](float x) { return static_cast<double>(std::abs(x)); });
}

double SumOfSquares(std::span<const float> a) {
  return Sum(a, [](float x) { return static_cast<double>(x) * x; });
}

}  // namespace ringtail
