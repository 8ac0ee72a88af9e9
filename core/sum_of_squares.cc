#include "core/sum_of_squares.h"

#include <array>
#include <cstdint>

#include "core/kernels/sum_of_squares.h"

namespace ringtail {

double SumOfSquares(std::span<const float> a) {
  std::array<double, kSumOfSquaresLanes> lanes{};
  const int64_t whole = std::ssize(a) / kSumOfSquaresLanes * kSumOfSquaresLanes;
  RT_KERNEL(AddSquares)(a.data(), whole, lanes.data());
  for (int64_t i = whole; i < std::ssize(a); ++i) {
    const double x = a[i];
    lanes[i - whole] += x * x;
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace ringtail
