#include "core/machine/processor_time.h"

#include <ctime>

namespace ringtail {
namespace {

double Seconds(clockid_t clock) {
  constexpr double kNanosecond = 1e-9;
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * kNanosecond;
}

}  // namespace

double ProcessSeconds() { return Seconds(CLOCK_PROCESS_CPUTIME_ID); }
double ThreadSeconds() { return Seconds(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace ringtail
