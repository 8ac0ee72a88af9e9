// The sum of squares of many floats, for norms of weights and gradients. In double, where no square
// of a float overflows or vanishes, and in 16 lanes: element i goes to lane i mod 16, and the lanes
// are added up in order at the end. A fixed order, so the same bits on every machine, and one that
// vectors can follow.
// Thread-safety: a function without state. Cost: one vectorised pass.
#ifndef RINGTAIL_CORE_SUM_OF_SQUARES_H_
#define RINGTAIL_CORE_SUM_OF_SQUARES_H_

#include <span>

namespace ringtail {

double SumOfSquares(std::span<const float> a);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_SUM_OF_SQUARES_H_
