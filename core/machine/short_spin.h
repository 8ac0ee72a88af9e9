// ShortSpin: during its lifetime, OpenMP's threads sleep almost at once when they wait for each
// other, instead of spinning for milliseconds first.
//
//   quiet cores     spinning is best: the next loop starts without a system call
//   shared cores    a spinning thread keeps its core from the thread that it waits for
//
// libgomp decides at each wait: it checks 300,000 times whether the wait is over, but only 100
// times while it manages more threads than there are cores (libgomp's manual, GOMP_SPINCOUNT). This
// class brings that state about with a second, sleeping team of as many threads as are missing. The
// user's OMP_WAIT_POLICY and GOMP_SPINCOUNT keep their effect: a count below 100 stays. With
// another OpenMP the class has no effect but to hold these threads.
//
// Thread-safety: any thread, one object at a time. Cost: about 100 us each to construct and
// destroy, and a few sleeping threads; a wait that would have ended within the spin costs a futex
// call, which makes a step of a small network 1 to 4 % longer on a quiet machine.
#ifndef RINGTAIL_CORE_MACHINE_SHORT_SPIN_H_
#define RINGTAIL_CORE_MACHINE_SHORT_SPIN_H_

#include <thread>

#include "core/mutex.h"

namespace ringtail {

class ShortSpin {
 public:
  // `team`: size of the team whose waits are to be short, at least 2. Returns once they are.
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
  std::thread holder_;  // master of the second team, which ends with it
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MACHINE_SHORT_SPIN_H_
