// A timeline of all threads for chrome://tracing or ui.perfetto.dev: which layer, which batch,
// which wait, side by side. Format: Chrome's trace events, "X" (complete) with times in
// microseconds, pid = rank, tid = thread, and "M" events that name the rank and the threads.
//
//   StartTrace(rank);
//   { ScopedSpan span(layer.name, "forward");  layer.Forward(); }
//   Status status = FinishTrace(run_directory + "/trace.json");
//
// dist/trace/world_trace.h joins the traces of several processes.
//
// State: one trace per process. A thread writes to its own buffer (at most kMaxTraceEvents
// spans; later ones are counted and dropped), which outlives the thread.
// Thread-safety: spans on any thread; the other functions on one thread.
// Cost: off (the default), a span is one relaxed load; on, two clock reads and one uncontended
// lock.
#ifndef RINGTAIL_CORE_TRACE_H_
#define RINGTAIL_CORE_TRACE_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"

namespace ringtail {

inline constexpr size_t kMaxTraceEvents = size_t{1} << 18;  // per thread; about 24 MiB

namespace internal {
extern std::atomic<bool> trace_on;
int64_t TraceClockNs();
void RecordSpan(std::string_view name, std::string_view category, int64_t start_ns);
}  // namespace internal

// Drops earlier spans and starts recording.
void StartTrace(int rank);

// Stops recording and writes the trace. Spans that have not ended are left out.
Status FinishTrace(const std::string& path);

// The parts of FinishTrace, for traces of several processes.
void StopTrace();
int64_t TraceOriginNs();  // internal::TraceClockNs at StartTrace

// Maps times of this process's clock to those of the trace: (time - origin_ns) * rate.
struct TraceTimes {
  int64_t origin_ns = 0;
  double rate = 1;
};
struct RecordedTrace {
  std::string events;  // JSON objects, separated by ",\n"
  size_t dropped_spans = 0;
};
// Moves the recorded spans out; `process_name` labels them.
RecordedTrace TakeTrace(std::string_view process_name, const TraceTimes& times);
// The whole file; `other_data`: members of a JSON object, R"("dropped_spans":0)".
std::string TraceJson(std::string_view events, std::string_view other_data);

// Records the time from construction to destruction. `name` and `category` must outlive the span.
class ScopedSpan {
 public:
  explicit ScopedSpan(std::string_view name, std::string_view category = "")
      : name_(name), category_(category) {
    if (internal::trace_on.load(std::memory_order_relaxed)) start_ns_ = internal::TraceClockNs();
  }
  ~ScopedSpan() {
    if (start_ns_ != kOff) internal::RecordSpan(name_, category_, start_ns_);
  }
  ScopedSpan(const ScopedSpan&) = delete;
  ScopedSpan& operator=(const ScopedSpan&) = delete;

 private:
  static constexpr int64_t kOff = -1;
  const std::string_view name_, category_;
  int64_t start_ns_ = kOff;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_TRACE_H_
