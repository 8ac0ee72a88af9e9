// One timeline of all ranks: dist/trace/.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/trace.h"
#include "dist/trace/clock_offset.h"
#include "dist/trace/world_trace.h"
#include "tests/dist/test_world.h"
#include "tests/testing/process.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ClockOffset, IsThatOfTheFormula) {
  // Rank 0's clock is 1000 ahead; 30 there, 5 for the answer, 10 back.
  const auto offset = OffsetOfRoundTrip(100, 1130, 1135, 145);
  ASSERT_TRUE(offset);
  EXPECT_EQ(offset->offset_ns, 1010);
  EXPECT_EQ(offset->error_ns, 20);
  EXPECT_EQ(offset->at_ns, 122);
}

TEST(ClockOffset, TimesThatNoClockShowsAreRefused) {
  EXPECT_FALSE(OffsetOfRoundTrip(100, 10, 9, 200)) << "answered before it was asked";
  EXPECT_FALSE(OffsetOfRoundTrip(100, 0, 101, 200)) << "answering took longer than all of it";
  EXPECT_FALSE(OffsetOfRoundTrip(100, INT64_MIN, INT64_MAX, 200));
  EXPECT_FALSE(OffsetOfRoundTrip(100, INT64_MAX, INT64_MAX, 200));
}

class WorldTraceTest : public ::testing::TestWithParam<WorldKind> {};

INSTANTIATE_TEST_SUITE_P(Every, WorldTraceTest, ::testing::ValuesIn(AllWorldKinds()),
                         [](const auto& info) { return info.param.name; });

// Whatever the load: the bound is one.
TEST_P(WorldTraceTest, ClocksAreMeasuredWithinTheirBound) {
  constexpr int kWorld = 4;
  constexpr int64_t kSkew = 3'600'000'000'000;  // each rank's clock is an hour later than the last
  const World world = GetParam().make(kWorld);
  OnEveryRank(kWorld, [&](int rank) {
    WaitingMessages messages(world[rank].get(), 5min);
    const auto clock = [&] { return internal::TraceClockNs() + rank * kSkew; };
    const int64_t before = clock();
    const auto offset = MeasureClockOffset(&messages, clock);
    ASSERT_TRUE(offset.ok()) << offset.status().ToString();
    EXPECT_LE(std::abs(offset->offset_ns + rank * kSkew), offset->error_ns);
    EXPECT_LE(before, offset->at_ns);
    EXPECT_LE(offset->at_ns, clock());
  });
}

TEST_P(WorldTraceTest, ARankZeroWhoseClockRunsBackIsRefused) {
  const World world = GetParam().make(2);
  OnEveryRank(2, [&](int rank) {
    WaitingMessages messages(world[rank].get(), 5min);
    int64_t time = 0;
    const auto clock = [&] { return rank == 0 ? --time : internal::TraceClockNs(); };
    EXPECT_EQ(MeasureClockOffset(&messages, clock).status().code(),
              rank == 0 ? StatusCode::kOk : StatusCode::kDataLoss);
  });
}

TEST_P(WorldTraceTest, TextsOfAnyLengthReachRankZero) {
  const World world = GetParam().make(2);
  OnEveryRank(2, [&](int rank) {
    WaitingMessages messages(world[rank].get(), 5min);
    for (const size_t bytes : {size_t{1}, size_t{4} << 20, (size_t{9} << 20) + 1}) {
      const std::string text(bytes, 'x');
      if (rank == 1) {
        EXPECT_TRUE(SendRankTrace(&messages, {{text, 3}, 12345}).ok());
        continue;
      }
      const auto trace = ReceiveRankTrace(&messages, 1);
      ASSERT_TRUE(trace.ok()) << trace.status().ToString();
      EXPECT_EQ(trace->recorded.events, text);
      EXPECT_EQ(trace->recorded.dropped_spans, 3);
      EXPECT_EQ(trace->clock_error_ns, 12345);
    }
  });
}

TEST_P(WorldTraceTest, ATraceThatIsOnlyClaimedCostsNoMemory) {
  for (const uint64_t claim : {uint64_t{0}, UINT64_MAX}) {
    const World world = GetParam().make(2);
    OnEveryRank(2, [&](int rank) {
      WaitingMessages messages(world[rank].get(), 5min);
      const uint64_t head[3] = {claim, 0, 0};
      if (rank == 1) {
        EXPECT_TRUE(messages.Send(0, std::as_bytes(std::span(head))).ok());
      } else {
        const auto trace = ReceiveRankTrace(&messages, 1);
        EXPECT_EQ(trace.status().code(), StatusCode::kDataLoss);
        EXPECT_EQ(trace.status().message(), fmt::format("rank 1 sends a trace of {} bytes", claim));
      }
    });
  }
}

TEST_P(WorldTraceTest, AMessageThatDoesNotComeEndsTheWorld) {
  const World world = GetParam().make(2);
  WaitingMessages messages(world[0].get(), 50ms);
  std::vector<std::byte> memory(8);
  const Status status = messages.Receive(1, memory);
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("receiving 8 bytes from rank 1"),
                                      HasSubstr("has not ended within 50 ms")));
}

// ---- between two measurements -------------------------------------------------------------------

constexpr int64_t kSecond = 1'000'000'000;

TEST(ClockMap, AConstantOffsetIsTakenFromTheBetterMeasurement) {
  const ClockMap map({.at_ns = 5 * kSecond, .offset_ns = 1000, .error_ns = 700},
                     {.at_ns = 9 * kSecond, .offset_ns = 1400, .error_ns = 200});
  EXPECT_EQ(map.rate(), 1);
  EXPECT_EQ(map.error_ns(), 200);
  EXPECT_EQ(map.TimeHere(6 * kSecond), 6 * kSecond - 1400);
}

TEST(ClockMap, ClocksOfDifferentRatesAgreeAtBothEnds) {
  // This clock is 20 us a second slower than rank 0's, for a minute.
  const ClockOffset begin = {.at_ns = 100 * kSecond, .offset_ns = 7 * kSecond, .error_ns = 300};
  const ClockOffset end = {
      .at_ns = 160 * kSecond, .offset_ns = 7 * kSecond + 1'200'000, .error_ns = 500};
  for (const bool swapped : {false, true}) {
    ClockOffset first = begin, last = end;
    if (swapped) std::swap(first.error_ns, last.error_ns);  // the other one is the better
    const ClockMap map(first, last);
    EXPECT_DOUBLE_EQ(map.rate(), 1.00002);
    EXPECT_EQ(map.error_ns(), 500);
    EXPECT_NEAR(map.TimeHere(107 * kSecond), 100 * kSecond, 2);
    EXPECT_NEAR(map.TimeHere(167 * kSecond + 1'200'000), 160 * kSecond, 2);
    EXPECT_NEAR(map.TimeHere(137 * kSecond + 600'000), 130 * kSecond, 2);
  }
}

TEST(ClockMap, ABrokenClockIsNotFollowed) {
  const ClockMap map({.at_ns = 0, .offset_ns = 0, .error_ns = 10},
                     {.at_ns = kSecond, .offset_ns = kSecond, .error_ns = 20});
  EXPECT_EQ(map.rate(), 1);
}

// ---- all of it: tests/dist/trace/trace_rank_main.cc ---------------------------------------------

json TraceOf(int world_size) {
  const TempDir folder;
  std::vector<std::unique_ptr<ChildProcess>> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    ranks.push_back(std::make_unique<ChildProcess>(
        std::vector<std::string>{std::string(RT_BINARY_DIR) + "/tests/dist_trace_rank_main",
                                 std::to_string(rank), std::to_string(world_size), folder.path()}));
  }
  for (const auto& rank : ranks) {
    const ProcessResult result = rank->Wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  std::ifstream stream(folder.File("trace.json"));
  return json::parse(stream);
}

TEST(WorldTrace, HasEveryRankAsAProcessAndCausesBeforeEffects) {
  constexpr int kWorld = 4;
  const json trace = TraceOf(kWorld);
  std::map<int, std::string> names;
  std::map<std::pair<int, std::string>, double> begin, end;  // of rank's span, us
  for (const json& event : trace["traceEvents"]) {
    const int rank = event["pid"];
    if (event["name"] == "process_name") names[rank] = event["args"]["name"];
    if (event["ph"] != "X") continue;
    const std::pair<int, std::string> key(rank, event["name"]);
    begin[key] = event["ts"];
    end[key] = event["ts"].get<double>() + event["dur"].get<double>();
  }
  EXPECT_EQ(trace["otherData"]["dropped_spans"], 0);
  const double error_us = trace["otherData"]["clock_error_us"];
  EXPECT_GT(error_us, 0);
  ASSERT_EQ(names.size(), kWorld);
  for (int rank = 0; rank < kWorld; ++rank) {
    EXPECT_EQ(names[rank], fmt::format("rank {} (node{})", rank, rank));
    ASSERT_TRUE(begin.contains({rank, "before"}));
    ASSERT_TRUE(begin.contains({rank, "after"}));
    if (rank == 0) continue;
    const double cause = end[{rank - 1, "after"}], effect = begin[{rank, "after"}];
    EXPECT_GE(effect, cause - 2 * error_us);
  }
}

TEST(WorldTrace, OfOneRankIsItsOwn) {
  const json trace = TraceOf(1);
  EXPECT_EQ(trace["traceEvents"][0]["args"]["name"], "rank 0 (node0)");
  EXPECT_EQ(trace["otherData"]["clock_error_us"], 0);
}

}  // namespace
}  // namespace ringtail
