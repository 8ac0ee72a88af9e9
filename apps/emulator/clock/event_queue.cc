#include "apps/emulator/clock/event_queue.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"

namespace ringtail {

int64_t Nanoseconds(double seconds) {
  RT_CHECK(!(seconds < 0), "a virtual time cannot be negative");
  // Also if there is no number: of no bytes at no speed.
  if (!(seconds < Seconds(kEndOfTimeNs))) return kEndOfTimeNs;
  return std::llround(seconds * kNanosecondsPerSecond);
}

int64_t After(int64_t time_ns, double seconds) {
  return std::min(time_ns + Nanoseconds(seconds), kEndOfTimeNs);
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
  if (event.time_ns >= kEndOfTimeNs) {
    return InvalidArgument(
        fmt::format("what worker {} does or waits for next ends after more than 100 years of "
                    "virtual time: make the script's times shorter (compute, slow.factor, "
                    "latency_us, cpu_ns_per_byte), or its links faster (mbit_per_s, add_gb_per_s)",
                    event.worker));
  }
  now_ns_ = event.time_ns;
  return event.action();
}

}  // namespace ringtail
