#include "core/trace.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/machine/thread_budget.h"
#include "core/mutex.h"
#include "core/storage/file.h"
#include "fmt/format.h"

namespace ringtail {
namespace {

struct Span {
  std::string name;
  std::string category;
  int64_t start_ns;
  int64_t duration_ns;
};

// The spans of one thread. The lock is uncontended except while the trace is written.
class ThreadSpans {
 public:
  ThreadSpans() : id_(gettid()), thread_name_(ThreadName()) {}

  void Add(Span span) RT_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    if (spans_.size() < kMaxTraceEvents) {
      spans_.push_back(std::move(span));
    } else {
      ++dropped_;
    }
  }

  // Empties the buffer; returns the number of dropped spans.
  size_t Take(std::vector<Span>* spans) RT_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    *spans = std::exchange(spans_, {});
    return std::exchange(dropped_, 0);
  }

  int id() const { return id_; }
  const std::string& thread_name() const { return thread_name_; }

 private:
  const int id_;
  const std::string thread_name_;
  Mutex mutex_;
  std::vector<Span> spans_ RT_GUARDED_BY(mutex_);
  size_t dropped_ RT_GUARDED_BY(mutex_) = 0;
};

struct Recorder {
  Mutex mutex;
  std::vector<std::shared_ptr<ThreadSpans>> threads RT_GUARDED_BY(mutex);
  std::atomic<int64_t> origin_ns{0};  // spans that began earlier belong to no trace
  int rank = 0;
};

Recorder& TheRecorder() {
  static Recorder* const recorder = new Recorder;  // never destroyed: threads may end after main()
  return *recorder;
}

ThreadSpans& SpansOfThisThread() {
  thread_local const std::shared_ptr<ThreadSpans> spans = [] {
    auto created = std::make_shared<ThreadSpans>();
    Recorder& recorder = TheRecorder();
    MutexLock lock(&recorder.mutex);
    recorder.threads.push_back(created);
    return created;
  }();
  return *spans;
}

std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void AppendName(std::string_view event, int rank, int thread, const std::string& name,
                std::string* out) {
  fmt::format_to(std::back_inserter(*out),
                 R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}},)"
                 "\n",
                 event, rank, thread, Quoted(name));
}

void AppendSpan(const Span& span, int rank, int thread, const TraceTimes& times, std::string* out) {
  const double us_per_ns = times.rate / 1e3;
  fmt::format_to(std::back_inserter(*out),
                 R"({{"name":{},"cat":{},"ph":"X","ts":{:.3f},"dur":{:.3f},"pid":{},"tid":{}}},)"
                 "\n",
                 Quoted(span.name), Quoted(span.category),
                 static_cast<double>(span.start_ns - times.origin_ns) * us_per_ns,
                 static_cast<double>(span.duration_ns) * us_per_ns, rank, thread);
}

// Moves out the spans of all threads, and forgets threads that have ended.
std::string TakeEvents(Recorder* recorder, const TraceTimes& times, size_t* dropped) {
  std::string events;
  MutexLock lock(&recorder->mutex);
  for (const auto& thread : recorder->threads) {
    std::vector<Span> spans;
    *dropped += thread->Take(&spans);
    if (spans.empty()) continue;
    AppendName("thread_name", recorder->rank, thread->id(), thread->thread_name(), &events);
    for (const Span& span : spans) {
      AppendSpan(span, recorder->rank, thread->id(), times, &events);
    }
  }
  std::erase_if(recorder->threads, [](const auto& thread) { return thread.use_count() == 1; });
  return events;
}

}  // namespace

namespace internal {

std::atomic<bool> trace_on{false};

int64_t TraceClockNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void RecordSpan(std::string_view name, std::string_view category, int64_t start_ns) {
  const int64_t end_ns = TraceClockNs();
  if (!trace_on.load(std::memory_order_relaxed)) return;
  if (start_ns < TheRecorder().origin_ns.load(std::memory_order_relaxed)) return;
  SpansOfThisThread().Add({std::string(name), std::string(category), start_ns, end_ns - start_ns});
}

}  // namespace internal

void StartTrace(int rank) {
  Recorder& recorder = TheRecorder();
  internal::trace_on = false;
  size_t ignored = 0;
  (void)TakeEvents(&recorder, {}, &ignored);
  recorder.rank = rank;
  recorder.origin_ns = internal::TraceClockNs();
  internal::trace_on = true;
}

void StopTrace() { internal::trace_on = false; }

int64_t TraceOriginNs() { return TheRecorder().origin_ns; }

RecordedTrace TakeTrace(std::string_view process_name, const TraceTimes& times) {
  Recorder& recorder = TheRecorder();
  RecordedTrace trace;
  AppendName("process_name", recorder.rank, 0, std::string(process_name), &trace.events);
  trace.events += TakeEvents(&recorder, times, &trace.dropped_spans);
  trace.events.resize(trace.events.size() - 2);  // the comma and the line end after the last
  return trace;
}

std::string TraceJson(std::string_view events, std::string_view other_data) {
  return fmt::format("{{\"traceEvents\":[\n{}\n],\"otherData\":{{{}}}}}\n", events, other_data);
}

Status FinishTrace(const std::string& path) {
  StopTrace();
  const RecordedTrace trace =
      TakeTrace(fmt::format("rank {}", TheRecorder().rank), {.origin_ns = TraceOriginNs()});
  const std::string other_data = fmt::format("\"dropped_spans\":{}", trace.dropped_spans);
  return WriteFileAtomic(path, TraceJson(trace.events, other_data)).Annotate("writing the trace");
}

}  // namespace ringtail
