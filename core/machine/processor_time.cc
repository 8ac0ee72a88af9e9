#include "core/machine/processor_time.h"

#include <ctime>

namespace ringtail {
namespace {

double SecondsOf(clockid_t clock) {
  constexpr double kNanosecond = 1e-9;
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * kNanosecond;
}

}  // namespace

double ProcessSeconds() { return SecondsOf(CLOCK_PROCESS_CPUTIME_ID); }
double ThreadSeconds() { return SecondsOf(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace ringtail
