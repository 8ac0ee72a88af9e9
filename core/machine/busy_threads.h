// BusyThreads: threads that compute as a training step does, so that what else a process does can be
// measured beside them: caches are theirs and cores are taken, as while it trains.
//
// Each passes over 2 MiB of its own, again and again, until the object is destroyed. Thread-safety: none.
// Cost: all of as many cores.
#ifndef RINGTAIL_CORE_MACHINE_BUSY_THREADS_H_
#define RINGTAIL_CORE_MACHINE_BUSY_THREADS_H_

#include <atomic>
#include <thread>
#include <vector>

namespace ringtail {

class BusyThreads {
 public:
  explicit BusyThreads(int count);
  ~BusyThreads();
  BusyThreads(const BusyThreads&) = delete;
  BusyThreads& operator=(const BusyThreads&) = delete;

  // Processor time of all of them since they began.
  double Seconds();

 private:
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MACHINE_BUSY_THREADS_H_
