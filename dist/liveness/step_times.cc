#include "dist/liveness/step_times.h"

#include <algorithm>
#include <cmath>

namespace ringtail {
namespace {

constexpr double kUsPerSecond = 1e6;
constexpr double kLongestSeconds = 1e6;  // eleven days: more is no step

// At least 1: 0 says that there is none.
uint64_t Microseconds(double seconds) {
  if (!(seconds > 0)) return 1;
  return std::max<uint64_t>(1, std::llround(std::min(seconds, kLongestSeconds) * kUsPerSecond));
}

}  // namespace

void StepTimes::Record(double compute_seconds, double step_seconds) {
  MutexLock lock(&mutex_);
  compute_[recorded_ % kSteps] = Microseconds(compute_seconds);
  step_[recorded_ % kSteps] = Microseconds(step_seconds);
  ++recorded_;
}

StepTimes::Medians StepTimes::Get() const {
  MutexLock lock(&mutex_);
  const size_t filled = std::min(recorded_, kSteps);
  const auto median = [filled](Window times) {
    const auto middle = times.begin() + filled / 2;
    std::nth_element(times.begin(), middle, times.begin() + filled);
    return *middle;
  };
  Medians medians;
  if (filled > 0) medians.step_us = median(step_);
  if (filled == kSteps) medians.compute_us = median(compute_);
  return medians;
}

}  // namespace ringtail
