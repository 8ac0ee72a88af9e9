// ShortSpin: for as long as one lives, OpenMP's threads sleep almost at once when they wait for
// each other, instead of spinning for milliseconds first.
//
//   quiet cores     spinning is the best: the next loop begins without a system call
//   shared cores    a thread that spins keeps its core from the thread that it waits for
//
// libgomp decides at each wait: it looks 300,000 times whether the wait is over, but only 100 times
// while it manages more threads than there are cores. That is what this makes it believe: a second
// team, asleep, of as many threads as are missing. (libgomp's manual, GOMP_SPINCOUNT. What the user
// says in OMP_WAIT_POLICY or GOMP_SPINCOUNT holds: a count below 100 stays.) With another OpenMP it
// does nothing but hold these threads.
//
// Thread-safety: any thread, one object at a time. Cost: making it and ending it, some 100 us and a
// few threads that sleep; a wait that would have ended within the spin costs a futex call, which
// makes a step of a small network 1 to 4 % longer on a quiet machine.
#ifndef RINGTAIL_CORE_SHORT_SPIN_H_
#define RINGTAIL_CORE_SHORT_SPIN_H_

#include <thread>

#include "core/mutex.h"

namespace ringtail {

class ShortSpin {
 public:
  // `team`: threads of the team whose waits are to be short, at least 2. Returns once it holds.
  explicit ShortSpin(int team);
  ~ShortSpin();
  ShortSpin(const ShortSpin&) = delete;
  ShortSpin& operator=(const ShortSpin&) = delete;

 private:
  void Hold(int threads) RT_EXCLUDES(mutex_);  // body of holder_

  Mutex mutex_;
  ConditionVariable changed_;
  bool held_ RT_GUARDED_BY(mutex_) = false;
  bool released_ RT_GUARDED_BY(mutex_) = false;
  std::thread holder_;  // the second team is its own, and ends with it
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_SHORT_SPIN_H_
