// StepTimes: how long this rank's last steps took. Thread-safety: any thread. Cost: one lock, and
// the median of ten numbers.
#ifndef RINGTAIL_DIST_LIVENESS_STEP_TIMES_H_
#define RINGTAIL_DIST_LIVENESS_STEP_TIMES_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/mutex.h"

namespace ringtail {

class StepTimes {
 public:
  static constexpr size_t kSteps = 10;  // the last so many count

  struct Medians {
    uint64_t step_us = 0;     // 0: no step has been recorded
    uint64_t compute_us = 0;  // 0: fewer than kSteps have
  };

  // `compute_seconds`: what the rank did by itself (data wait, forward, backward), without waiting
  // for others; `step_seconds`: all of the step.
  void Record(double compute_seconds, double step_seconds) RT_EXCLUDES(mutex_);
  Medians Get() const RT_EXCLUDES(mutex_);

 private:
  using Window = std::array<uint64_t, kSteps>;  // microseconds, the latest at recorded_ - 1

  mutable Mutex mutex_;
  size_t recorded_ RT_GUARDED_BY(mutex_) = 0;
  Window compute_ RT_GUARDED_BY(mutex_) = {};
  Window step_ RT_GUARDED_BY(mutex_) = {};
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_LIVENESS_STEP_TIMES_H_
