// WakeDelays: by how much later a worker's communication continues since the worker computes, one draw
// for each time that it waits.
//
// The mean is what WakeDelay measures (core/machine/wake_delay.h). A mean alone would be too fast: ranks
// wait for one another in every round of an exchange, so that the latest of them counts. Draws are
// exponential, whose deviation is as large as their mean. Threads under a limit on the processor are much
// alike: a thread that wakes in the share w of a period p in which the limit stops all threads waits for
// anything up to w p, and otherwise not at all, a deviation of sqrt(4 / (3 w) - 1) of the mean.
//
// A worker's n-th draw is the same whatever others draw. Thread-safety: one thread.
#ifndef RINGTAIL_APPS_EMULATOR_CLOCK_WAKE_DELAYS_H_
#define RINGTAIL_APPS_EMULATOR_CLOCK_WAKE_DELAYS_H_

#include <cstdint>
#include <vector>

#include "core/random.h"

namespace ringtail {

class WakeDelays {
 public:
  // None.
  WakeDelays() = default;
  WakeDelays(uint64_t seed, double mean_seconds) : seed_(seed), mean_s_(mean_seconds) {}

  // Seconds, >= 0.
  double Next(int worker);

 private:
  uint64_t seed_ = 0;
  double mean_s_ = 0;
  std::vector<Rng> draws_;  // by worker; grows with the workers that join
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_CLOCK_WAKE_DELAYS_H_
