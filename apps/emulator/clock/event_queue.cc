#include "apps/emulator/clock/event_queue.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"

namespace ringtail {

int64_t Nanoseconds(double seconds) {
  constexpr double kMost = 100 * 365.25 * 24 * 3600;
  RT_CHECK(seconds >= 0 && seconds < kMost, "virtual times are between 0 and 100 years");
  return std::llround(seconds * kNanosecondsPerSecond);
}

double Seconds(int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / kNanosecondsPerSecond;
}

void EventQueue::Schedule(int64_t time_ns, int worker, Action action) {
  RT_CHECK(time_ns >= now_ns_, "an event cannot be in the past");
  heap_.push_back({.time_ns = time_ns,
                   .worker = worker,
                   .sequence = next_sequence_++,
                   .action = std::move(action)});
  std::push_heap(heap_.begin(), heap_.end());
}

Status EventQueue::RunNext() {
  RT_CHECK(!heap_.empty(), "there must be an event");
  std::pop_heap(heap_.begin(), heap_.end());
  const Event event = std::move(heap_.back());
  heap_.pop_back();
  now_ns_ = event.time_ns;
  return event.action();
}

}  // namespace ringtail
