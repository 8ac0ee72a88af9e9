// OneBusyCore: this thread on a core that others want, too, so that it waits for a processor most of the time.
//
//   const OneBusyCore busy;
//   ASSERT_TRUE(busy.kept());
//   ... what is measured in processor time (core/machine/processor_time.h) takes as long as alone ...
//
// The thread stays on the core afterwards. Thread-safety: the thread that creates it.
#ifndef RINGTAIL_TESTS_TESTING_ONE_BUSY_CORE_H_
#define RINGTAIL_TESTS_TESTING_ONE_BUSY_CORE_H_

#include <sched.h>

#include <stop_token>
#include <thread>
#include <vector>

namespace ringtail {

class OneBusyCore {
 public:
  static constexpr int kNeighbors = 8;  // that never rest

  OneBusyCore() : kept_(KeepToOneCore()) {
    if (!kept_) return;
    neighbors_.reserve(kNeighbors);
    for (int i = 0; i < kNeighbors; ++i) {
      neighbors_.emplace_back([](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
        }
      });
    }
  }
  // False if the system does not allow it; then there are no neighbors.
  bool kept() const { return kept_; }

 private:
  // This thread, and those that it starts from now on.
  static bool KeepToOneCore() {
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) != 0) return false;
    int core = 0;
    while (!CPU_ISSET(core, &cores)) ++core;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    return sched_setaffinity(0, sizeof cores, &cores) == 0;
  }

  const bool kept_;
  std::vector<std::jthread> neighbors_;
};

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_TESTING_ONE_BUSY_CORE_H_
