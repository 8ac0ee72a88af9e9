// Wall-clock time since construction or the last Restart, in seconds, on a clock that never jumps.
#ifndef RINGTAIL_APPS_STOPWATCH_H_
#define RINGTAIL_APPS_STOPWATCH_H_

#include <chrono>

namespace ringtail {

class Stopwatch {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  double Restart() {
    const double seconds = Seconds();
    start_ = std::chrono::steady_clock::now();
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_STOPWATCH_H_
