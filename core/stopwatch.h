// Wall-clock times on a clock that never jumps, in seconds.
// Thread-safety: none. Cost: one clock read.
#ifndef RINGTAIL_CORE_STOPWATCH_H_
#define RINGTAIL_CORE_STOPWATCH_H_

#include <chrono>

namespace ringtail {

// The time since construction or the last Restart.
class Stopwatch {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  // Starts again from zero; returns the time until now.
  double Restart() {
    const double seconds = Seconds();
    start_ = std::chrono::steady_clock::now();
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Adds the lifetime of the object to *total_seconds.
class ScopedStopwatch {
 public:
  explicit ScopedStopwatch(double* total_seconds) : total_seconds_(total_seconds) {}
  ~ScopedStopwatch() { *total_seconds_ += stopwatch_.Seconds(); }
  ScopedStopwatch(const ScopedStopwatch&) = delete;
  ScopedStopwatch& operator=(const ScopedStopwatch&) = delete;

 private:
  double* const total_seconds_;
  Stopwatch stopwatch_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STOPWATCH_H_
