#include "core/sum_of_squares.h"

#include <array>
#include <cstddef>

namespace ringtail {
namespace {

constexpr size_t kLanes = 16;

double Square(float x) { return static_cast<double>(x) * x; }

}  // namespace

double SumOfSquares(std::span<const float> a) {
  std::array<double, kLanes> lanes{};
  size_t i = 0;
  for (; i + kLanes <= a.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += Square(a[i + lane]);
  }
  for (size_t lane = 0; i + lane < a.size(); ++lane) lanes[lane] += Square(a[i + lane]);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace ringtail
