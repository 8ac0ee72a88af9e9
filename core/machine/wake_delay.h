// WakeDelay: by how much later a thread wakes since others compute.
//
// What waits for a message sleeps until the kernel gives it a core. Beside threads that compute it has
// to wait for one: until the kernel looks at its queue again, once in a tick; until the next period of
// a container's limit on the processor (Turner, Rao & Rao 2010, "CPU bandwidth control for CFS"); until
// ranks that share the core have had their turn:
//
//   sleeper       zzzz|....late....|zzzzzzz||zzzzzzzzz|..late..|zz
//   computing     ====|============|         =========|========|==
//
// A thread of its own sleeps for 2 to 12 ms at a time, for as long as the object lives. Thread-safety:
// none. Cost: 150 wake-ups per second.
#ifndef RINGTAIL_CORE_MACHINE_WAKE_DELAY_H_
#define RINGTAIL_CORE_MACHINE_WAKE_DELAY_H_

#include <thread>
#include <vector>

#include "core/mutex.h"

namespace ringtail {

// Of how late a thread has woken, in seconds: the mean beyond the least, which the clock takes. 0 of
// none.
double MeanBeyondLeast(const std::vector<double>& late);

class WakeDelay {
 public:
  WakeDelay();
  ~WakeDelay();
  WakeDelay(const WakeDelay&) = delete;
  WakeDelay& operator=(const WakeDelay&) = delete;

  // Seconds, mean since the object was made.
  double Mean() const RT_EXCLUDES(mutex_);

 private:
  void Run() RT_EXCLUDES(mutex_);  // body of sleeper_

  mutable Mutex mutex_;
  ConditionVariable stopped_;
  bool stop_ RT_GUARDED_BY(mutex_) = false;
  std::vector<double> late_ RT_GUARDED_BY(mutex_);
  std::thread sleeper_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MACHINE_WAKE_DELAY_H_
