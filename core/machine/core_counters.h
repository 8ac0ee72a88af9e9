// The kernel's counters of this process's use of its cores (proc(5): /proc/PID/task/TID/schedstat,
// /proc/stat; cpu.stat of its control groups). Each call returns the change since the same call before.
// Thread-safety: none. Errors: unreadable counters count as zero. Cost: 1 us per thread that is watched;
// OtherWork: 20 to 50 us; HeldByQuota: nothing without a quota.
#ifndef RINGTAIL_CORE_MACHINE_CORE_COUNTERS_H_
#define RINGTAIL_CORE_MACHINE_CORE_COUNTERS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "core/storage/file_descriptor.h"

namespace ringtail {

// The threads of this process that have a name: compute threads have that of the thread that started
// them, all others of Ringtail have names of their own (SetThreadName).
class NamedThreads {
 public:
  explicit NamedThreads(std::string name);  // finds them
  // Updates the list of threads: a team grows and shrinks.
  void Find();
  int size() const { return static_cast<int>(threads_.size()); }
  // Seconds of processor time, the sum over the threads.
  double Ran();
  // Seconds in which the most delayed thread was ready to run while others had its core.
  double LongestDelay();

 private:
  struct Thread {
    FileDescriptor schedstat;
    uint64_t ran_ns = 0, delay_ns = 0;
  };
  std::string name_;
  std::map<int, Thread> threads_;  // by thread id
};

// The time in which the cores that this process may use worked for other processes.
class OtherWork {
 public:
  OtherWork();
  double Seconds();  // sum over the cores, at least 0

 private:
  double CoresBusy() const;  // since boot, including time that the hypervisor took

  std::set<int> cores_;
  double before_ = 0;
};

// The time in which the CPU quota of this process's control group has kept its threads from
// running, summed over the cores; 0 without a quota.
class HeldByQuota {
 public:
  explicit HeldByQuota(std::string cgroup_root);  // as for CgroupQuota
  double Seconds();

 private:
  const std::string root_;
  const bool limited_;
  double before_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MACHINE_CORE_COUNTERS_H_
