// CoreWatch: checks twenty times a second whether the compute threads have their cores to
// themselves, and sets how they wait: spinning on quiet cores, sleeping on shared ones.
//
//   SetNumComputeThreads(8);
//   const CoreWatch watch([](const std::string& notice) { LogWarning(notice); });
//
// Construct it on the thread that computes, after that thread got its name. With one compute thread
// no thread waits for another, and under a CPU quota below the number of compute threads spinning
// always wastes quota: in both cases only the notice is left to decide, once a second.
//
//   core_counters.h    the kernel's counters
//   core_sharing.h     the decision
//   short_spin.h       its effect on OpenMP
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
#include "core/machine/short_spin.h"
#include "core/mutex.h"

namespace ringtail {

class CoreWatch {
 public:
  // `tell` is called with a notice about shared cores or a quota, at most once, on the watch's thread; it may
  // be empty. `cgroup_root`: as for CgroupQuota.
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

  // Used by thread_ only.
  NamedThreads team_threads_;
  OtherWork others_;
  HeldByQuota held_;
  CoreSharing sharing_;
  std::unique_ptr<ShortSpin> short_spin_;

  Mutex mutex_;
  ConditionVariable ended_changed_;
  bool ended_ RT_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MACHINE_CORE_WATCH_H_
