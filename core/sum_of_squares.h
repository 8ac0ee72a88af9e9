// The sum of squares of many floats, for norms of weights and gradients. Summed in double, where no
// square of a float overflows or vanishes, and in 16 lanes: element i goes to lane i mod 16, and
// the lanes are added in order at the end. The order is fixed, so the bits are the same on every
// machine, and suits vector instructions.
// Thread-safety: a function without state. Cost: one vectorised pass.
#ifndef RINGTAIL_CORE_SUM_OF_SQUARES_H_
#define RINGTAIL_CORE_SUM_OF_SQUARES_H_

#include <span>

namespace ringtail {

double SumOfSquares(std::span<const float> a);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_SUM_OF_SQUARES_H_
