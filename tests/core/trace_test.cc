#include "core/trace.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <vector>

#include "core/machine/thread_budget.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

class TraceTest : public ::testing::Test {
 protected:
  // Ends the trace and reads it back.
  json Finish() {
    const std::string path = dir_.File("trace.json");
    const Status status = FinishTrace(path);
    EXPECT_TRUE(status.ok()) << status.ToString();
    std::ifstream stream(path);
    return json::parse(stream);
  }

  static std::vector<json> Spans(const json& trace) {
    std::vector<json> spans;
    for (const json& event : trace["traceEvents"]) {
      if (event["ph"] == "X") spans.push_back(event);
    }
    return spans;
  }

  static std::vector<std::string> Names(const json& trace) {
    std::vector<std::string> names;
    for (const json& span : Spans(trace)) names.push_back(span["name"]);
    return names;
  }

  const TempDir dir_;
};

TEST_F(TraceTest, OffByDefault) {
  { const ScopedSpan span("before"); }
  StartTrace(0);
  EXPECT_THAT(Names(Finish()), ElementsAre());
  { const ScopedSpan span("after"); }
  StartTrace(0);
  EXPECT_THAT(Names(Finish()), ElementsAre());
}

TEST_F(TraceTest, SpansHaveNameCategoryRankThreadAndTimes) {
  SetThreadName("rt-trainer");
  StartTrace(3);
  {
    const ScopedSpan outer("conv1", "forward");
    { const ScopedSpan inner("inner \"quoted\"\n\xFF"); }
  }
  const json trace = Finish();
  const std::vector<json> spans = Spans(trace);
  ASSERT_EQ(spans.size(), 2u);
  const json &inner = spans[0], &outer = spans[1];  // in the order of their ends
  EXPECT_EQ(outer["name"], "conv1");
  EXPECT_EQ(outer["cat"], "forward");
  EXPECT_EQ(outer["pid"], 3);
  EXPECT_EQ(inner["name"], "inner \"quoted\"\n\xEF\xBF\xBD");
  EXPECT_GE(outer["ts"].get<double>(), 0);
  EXPECT_LE(outer["ts"].get<double>(), inner["ts"].get<double>());
  const auto end = [](const json& e) { return e["ts"].get<double>() + e["dur"].get<double>(); };
  EXPECT_LE(end(inner), end(outer) + 1e-3);  // times are rounded to a nanosecond
  EXPECT_EQ(trace["otherData"]["dropped_spans"], 0);

  std::map<std::string, json> meta;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "M") meta[event["name"]] = event;
  }
  EXPECT_EQ(meta["process_name"]["args"]["name"], "rank 3");
  EXPECT_EQ(meta["thread_name"]["args"]["name"], "rt-trainer");
  EXPECT_EQ(meta["thread_name"]["tid"], outer["tid"]);
}

TEST_F(TraceTest, TimesCanBeMappedToAnotherClock) {
  StartTrace(2);
  EXPECT_LE(TraceOriginNs(), internal::TraceClockNs());
  { const ScopedSpan span("work"); }
  StopTrace();
  { const ScopedSpan span("too late"); }
  // A clock that is 7 ms ahead, and twice as fast.
  const RecordedTrace trace =
      TakeTrace("rank 2 (\"node3\")", {.origin_ns = TraceOriginNs() - 3'500'000, .rate = 2});
  EXPECT_EQ(trace.dropped_spans, 0);
  const json file = json::parse(TraceJson(trace.events, R"("dropped_spans":4)"));
  EXPECT_THAT(Names(file), ElementsAre("work"));
  EXPECT_GE(Spans(file)[0]["ts"].get<double>(), 7000);
  EXPECT_EQ(file["traceEvents"][0]["args"]["name"], "rank 2 (\"node3\")");
  EXPECT_EQ(file["otherData"]["dropped_spans"], 4);
}

TEST_F(TraceTest, EveryThreadHasItsOwnLine) {
  constexpr int kThreads = 4, kSpans = 1000;
  StartTrace(0);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      SetThreadName("worker-" + std::to_string(t));
      for (int i = 0; i < kSpans; ++i) const ScopedSpan span("work");
    });
  }
  for (std::thread& thread : threads) thread.join();  // spans of ended threads are kept
  const json trace = Finish();
  std::map<int, int> spans_of_thread;
  for (const json& span : Spans(trace)) ++spans_of_thread[span["tid"].get<int>()];
  EXPECT_EQ(spans_of_thread.size(), size_t{kThreads});
  for (const auto& [thread, spans] : spans_of_thread) EXPECT_EQ(spans, kSpans);
  std::set<std::string> names;
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") names.insert(event["args"]["name"]);
  }
  EXPECT_THAT(names, ElementsAre("worker-0", "worker-1", "worker-2", "worker-3"));
}

TEST_F(TraceTest, SpansAcrossStartOrFinishAreLeftOut) {
  {
    StartTrace(0);
    const ScopedSpan begun_in_an_earlier_trace("old");
    StartTrace(0);
  }
  EXPECT_THAT(Names(Finish()), ElementsAre());
  json trace;
  StartTrace(0);
  {
    const ScopedSpan not_ended("open");
    { const ScopedSpan ended("ended"); }
    trace = Finish();
  }
  EXPECT_THAT(Names(trace), ElementsAre("ended"));
}

TEST_F(TraceTest, FinishingWhileOthersRecordIsSafe) {
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    while (!stop) const ScopedSpan span("busy");
  });
  for (int i = 0; i < 20; ++i) {
    StartTrace(0);
    { const ScopedSpan span("mine"); }
    EXPECT_THAT(Names(Finish()), ::testing::Contains("mine"));
  }
  stop = true;
  worker.join();
}

TEST_F(TraceTest, MemoryIsBoundedAndDroppedSpansAreCounted) {
  constexpr size_t kLost = 5;
  StartTrace(0);
  for (size_t i = 0; i < kMaxTraceEvents + kLost; ++i) const ScopedSpan span("s");
  const std::string path = dir_.File("trace.json");
  ASSERT_TRUE(FinishTrace(path).ok());
  std::ifstream stream(path);
  // Counted, without the minute that parsing a million of them would take with sanitizers.
  size_t spans = 0;
  std::string last;
  for (std::string line; std::getline(stream, line); last = line) {
    spans += line.find(R"("ph":"X")") != line.npos ? 1 : 0;
  }
  EXPECT_EQ(spans, kMaxTraceEvents);
  EXPECT_THAT(last, ::testing::HasSubstr(fmt::format(R"("dropped_spans":{}}})", kLost)));
}

TEST_F(TraceTest, AnUnwritablePathIsAnError) {
  StartTrace(0);
  const Status status = FinishTrace(dir_.File("none/trace.json"));
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), ::testing::HasSubstr("none"));
}

}  // namespace
}  // namespace ringtail
