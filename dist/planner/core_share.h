// CoreShare: what is left of the cores for backward while gradients are coded and sent.
//
// A rank has C cores and n = max(1, C) compute threads (C < 1: a quota of the processor);
// communication would use c <= C cores if it were alone. The scheduler gives every thread that wants
// to run the same share, so communication, which counts as m = max(1, c) threads, gets at least
// C m / (n + m) cores if it wants them:
//
//   g = min(c, C m / (n + m))       compute runs at (C - g) / C of its speed, communication at g / c
//
//      C = 1, coding (c = 1)    both at one half
//      C = 8, coding            compute at 0.89, coding at 0.89
//      C = 2, sending (c = 0.6) compute at 0.7, the wire at full speed
//
// g <= c <= C, so the two together are never slower than one after the other, and all cores are
// busy as long as both have work. A fluid: threads of a step that wait for the one whose core is
// taken lose more. Cores shared between compute and communication are what analytic models leave
// out (dPRO, Hu et al. 2022; ASTRA-sim, Rashidi et al. 2020: accelerators do not share theirs).
// Thread-safety: a pure function.
#ifndef RINGTAIL_DIST_PLANNER_CORE_SHARE_H_
#define RINGTAIL_DIST_PLANNER_CORE_SHARE_H_

#include <algorithm>

namespace ringtail {

struct CoreShare {
  double compute = 1, communication = 1;  // of the speed that each has alone
};

// `cores` > 0; 0 <= `wanted` <= `cores`.
inline CoreShare ShareCores(double cores, double wanted) {
  if (wanted <= 0) return {};
  const double compute = std::max(1.0, cores), threads = std::max(1.0, wanted);
  const double granted = std::min(wanted, cores * threads / (compute + threads));
  return {.compute = (cores - granted) / cores, .communication = granted / wanted};
}

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_CORE_SHARE_H_
