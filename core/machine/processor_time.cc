#include "core/machine/processor_time.h"

#include <pthread.h>

#include <ctime>

#include "core/check.h"

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

double SecondsOfThread(std::thread& thread) {
  clockid_t clock{};
  RT_CHECK(pthread_getcpuclockid(thread.native_handle(), &clock) == 0, "the thread has ended");
  return SecondsOf(clock);
}

}  // namespace ringtail
