// CoreWatch: looks twenty times a second whether the compute threads have their cores to themselves,
// and has them wait for each other accordingly: spinning on quiet cores, asleep on shared ones.
//
//   SetNumComputeThreads(8);
//   const CoreWatch watch([](const std::string& notice) { LogWarning(notice); });
//
// To be made by the thread that computes, under the name that it keeps. With one compute thread
// nobody waits, and with a CPU quota below the number of compute threads time that is spent
// spinning is always missing: then there is nothing to look at but for the notice.
//
//   core_counters.h    what the kernel counts
//   core_sharing.h     what follows from it
//   short_spin.h       how OpenMP is told
//
// Threads: one, "rt-core-watch". Thread-safety: the thread that computes. Cost: 0.01 % of a core.
#ifndef RINGTAIL_CORE_MACHINE_CORE_WATCH_H_
#define RINGTAIL_CORE_MACHINE_CORE_WATCH_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "core/machine/core_counters.h"
#include "core/machine/core_sharing.h"
#include "core/mutex.h"
#include "core/short_spin.h"

namespace ringtail {

class CoreWatch {
 public:
  // `tell`: what to say of shared cores, at most once, on the watch's thread; none: nothing.
  // `cgroup_root`: as for CgroupQuotaCores.
  explicit CoreWatch(std::function<void(const std::string& notice)> tell = {},
                     const std::string& cgroup_root = "");
  ~CoreWatch();
  CoreWatch(const CoreWatch&) = delete;
  CoreWatch& operator=(const CoreWatch&) = delete;

 private:
  void Run();                              // body of thread_
  bool WaitForNext() RT_EXCLUDES(mutex_);  // false once the watch ends
  void SetShortSpin(bool wanted);

  const std::function<void(const std::string&)> tell_;
  const int team_;
  const bool quota_binds_;

  // Of thread_.
  RunDelays delays_;
  OtherWork others_;
  CoreSharing sharing_;
  std::unique_ptr<ShortSpin> short_spin_;

  Mutex mutex_;
  ConditionVariable ended_changed_;
  bool ended_ RT_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MACHINE_CORE_WATCH_H_
