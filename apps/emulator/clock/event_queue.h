// EventQueue: virtual time. What happens is a sequence of events; between them no time passes.
//
//   time  0       12.5 ms           12.5 ms           40 ms
//         |          |                 |                |
//         worker 0   worker 1 (#7)     worker 1 (#9)    worker 0        now = the event that runs
//
// Events run in the order (time, worker, sequence), where the sequence counts the calls of
// Schedule: a total order, so that a run has the same events in the same order every time. Times
// are whole nanoseconds: sums of them are exact, whatever their order. Virtual time ends after 100
// years, so that no sum overflows: what would be later is then, and is never run.
// Thread-safety: one thread. Cost: O(log n) per event.
#ifndef RINGTAIL_APPS_EMULATOR_CLOCK_EVENT_QUEUE_H_
#define RINGTAIL_APPS_EMULATOR_CLOCK_EVENT_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <vector>

#include "core/status.h"

namespace ringtail {

inline constexpr double kNanosecondsPerSecond = 1e9;
inline constexpr double kNanosecondsPerMillisecond = 1e6;

// 100 years of 365.25 days.
inline constexpr int64_t kEndOfTimeNs = 36'525LL * 24 * 3600 * 1'000'000'000;

// The nearest nanosecond, but kEndOfTimeNs at most; `seconds` is at least 0.
int64_t Nanoseconds(double seconds);
// `seconds` later than `time_ns`, or both together: kEndOfTimeNs at most.
int64_t After(int64_t time_ns, double seconds);
double Seconds(int64_t nanoseconds);

class EventQueue {
 public:
  using Action = std::function<Status()>;

  int64_t now_ns() const { return now_ns_; }
  bool empty() const { return heap_.empty(); }

  // Of an event of `worker`, not before now.
  void Schedule(int64_t time_ns, int worker, Action action);
  // The next event; there must be one. Returns what its action returns; InvalidArgument that says
  // what to change, and time stays, if it is at the end of time.
  Status RunNext();

 private:
  struct Event {
    int64_t time_ns = 0;
    int worker = 0;
    int64_t sequence = 0;
    Action action;

    // For std::push_heap, which keeps the largest in front.
    bool operator<(const Event& other) const {
      return std::tie(time_ns, worker, sequence) >
             std::tie(other.time_ns, other.worker, other.sequence);
    }
  };

  int64_t now_ns_ = 0;
  int64_t next_sequence_ = 0;
  std::vector<Event> heap_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_CLOCK_EVENT_QUEUE_H_
