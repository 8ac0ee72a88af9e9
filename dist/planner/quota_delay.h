// QuotaDelay: how long a message waits for a rank that has used up its share of the processor.
//
// The kernel limits a group of processes to C cores by stopping all of its threads for the rest of
// every period P in which they have had C P seconds (a cgroup's cpu.max; Turner, Rao & Rao 2010, "CPU
// bandwidth control for CFS"). A rank whose n = ceil(C) threads compute all the time runs for a share
// s = C / n of each period:
//
//   |== runs ==|........ stands still ........|== runs ==|........
//                  message comes ^             ^ is read, and the next one sent
//
// A message finds it standing still with probability 1 - s, and then waits for (1 - s) P / 2:
//
//   (1 - s)^2 P / 2        a quarter of a core, 4 ms: 1.1 ms; 1.5 cores, 100 ms: 3.1 ms; 2 cores: none
//
// A ring of 8 ranks has 14 messages on its path, which wait one after another. Thread-safety: a pure
// function.
#ifndef RINGTAIL_DIST_PLANNER_QUOTA_DELAY_H_
#define RINGTAIL_DIST_PLANNER_QUOTA_DELAY_H_

#include <cmath>

namespace ringtail {

// Seconds. `cores` > 0 of the rank; `period_s` 0: no limit.
inline double QuotaDelay(double cores, double period_s) {
  const double still = 1 - cores / std::ceil(cores);
  return still * still * period_s / 2;
}

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_QUOTA_DELAY_H_
