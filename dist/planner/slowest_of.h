// SlowestOf: how much longer than the mean the slowest of n ranks takes, in standard deviations, if
// their times are independent and normal: the expectation of the largest of n. All that wait for one
// another wait so long (Dutta et al. 2018, "Slow and Stale Gradients Can Win the Race").
//
//   n       1    2     4     8     16    32
//           0  0.56  1.03  1.42  1.77  2.07
//
// Cost: some 10 us. Thread-safety: a pure function.
#ifndef RINGTAIL_DIST_PLANNER_SLOWEST_OF_H_
#define RINGTAIL_DIST_PLANNER_SLOWEST_OF_H_

#include <cstdint>

namespace ringtail {

// n >= 1
double SlowestOf(int64_t n);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_SLOWEST_OF_H_
