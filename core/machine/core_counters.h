// What the kernel counts about this process's use of its cores (proc(5): /proc/PID/task/TID/schedstat,
// /proc/stat). Each call returns what has happened since the one before.
// Thread-safety: none. Errors: what cannot be read counts as zero. Cost: 1 us for each compute
// thread; 20 to 50 us more where the cores themselves are looked at.
#ifndef RINGTAIL_CORE_MACHINE_CORE_COUNTERS_H_
#define RINGTAIL_CORE_MACHINE_CORE_COUNTERS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "core/storage/file_descriptor.h"

namespace ringtail {

// How long threads were ready to run while other threads had their cores.
class RunDelays {
 public:
  // Of all threads of the calling process that carry the name of the calling thread: OpenMP's team
  // has the name of the thread that made it, all others of Ringtail have names of their own.
  RunDelays();
  // The compute threads, as they are now: a team grows and shrinks.
  void FindThreads();
  int threads() const { return static_cast<int>(threads_.size()); }
  // Seconds, of the thread that was delayed most.
  double Longest();

 private:
  struct Thread {
    FileDescriptor schedstat;
    uint64_t delay_ns = 0;
  };
  std::string name_;
  std::map<int, Thread> threads_;  // by thread id
};

// How long the cores that this process may use have worked for others.
class OtherWork {
 public:
  OtherWork();
  double Seconds();  // sum over the cores, at least 0

 private:
  double CoresBusy() const;  // since the machine began, with what its hypervisor took away

  std::set<int> cores_;
  double before_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MACHINE_CORE_COUNTERS_H_
