#include "apps/emulator/clock/event_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <vector>

#include "core/random.h"

namespace ringtail {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Key = std::tuple<int64_t, int, int64_t>;  // time, worker, sequence

Rng Draws(uint64_t stream) { return Rng(RngKey(1).With(kTestStream).With(stream)); }

TEST(EventQueueTest, RunsInTheOrderOfASort) {
  constexpr int kEvents = 100'000;
  Rng rng = Draws(0);
  EventQueue queue;
  std::vector<Key> scheduled, run;
  for (int64_t i = 0; i < kEvents; ++i) {
    // Few times and workers, so that many events share them.
    const auto time = static_cast<int64_t>(rng.Below(1000));
    const auto worker = static_cast<int>(rng.Below(8));
    scheduled.emplace_back(time, worker, i);
    queue.Schedule(time, worker, [&run, &queue, worker, i] {
      run.emplace_back(queue.now_ns(), worker, i);
      return OkStatus();
    });
  }
  while (!queue.empty()) ASSERT_TRUE(queue.RunNext().ok());
  std::sort(scheduled.begin(), scheduled.end());
  EXPECT_EQ(run, scheduled);
}

// Events that schedule others, at the same time, too: time never goes back.
TEST(EventQueueTest, EventsScheduleOthers) {
  Rng rng = Draws(1);
  EventQueue queue;
  int64_t left = 20'000, last = 0;
  bool in_order = true;
  std::function<Status()> next = [&] {
    in_order = in_order && queue.now_ns() >= last;
    last = queue.now_ns();
    for (int i = 0; i < 2 && left > 0; ++i, --left) {
      queue.Schedule(last + static_cast<int64_t>(rng.Below(5)), static_cast<int>(rng.Below(4)),
                     next);
    }
    return OkStatus();
  };
  queue.Schedule(0, 0, next);
  while (!queue.empty()) ASSERT_TRUE(queue.RunNext().ok());
  EXPECT_TRUE(in_order);
  EXPECT_EQ(left, 0);
  EXPECT_GT(last, 0);
}

TEST(EventQueueTest, ReturnsTheErrorOfAnEvent) {
  EventQueue queue;
  queue.Schedule(7, 0, [] { return DataLoss("gone"); });
  EXPECT_EQ(queue.RunNext().message(), "gone");
  EXPECT_EQ(queue.now_ns(), 7);
}

TEST(EventQueueTest, ConvertsTimes) {
  EXPECT_EQ(Nanoseconds(1.5e-9), 2);
  EXPECT_EQ(Nanoseconds(12.5), 12'500'000'000);
  EXPECT_EQ(Seconds(12'500'000'000), 12.5);
}

// Sums stay there, too: nothing overflows.
TEST(EventQueueTest, TimeEndsAfterAHundredYears) {
  EXPECT_EQ(Nanoseconds(3.155'76e9), kEndOfTimeNs);
  EXPECT_EQ(Nanoseconds(std::numeric_limits<double>::infinity()), kEndOfTimeNs);
  EXPECT_EQ(After(12, 1), 1'000'000'012);
  EXPECT_EQ(After(kEndOfTimeNs - 1, 1e-9), kEndOfTimeNs);
  EXPECT_EQ(After(kEndOfTimeNs, 3.1e9), kEndOfTimeNs);
}

TEST(EventQueueTest, RefusesToRunWhatIsAtTheEndOfTime) {
  EventQueue queue;
  queue.Schedule(7, 0, [] { return OkStatus(); });
  bool ran = false;
  queue.Schedule(After(7, 1e300), 3, [&ran] {
    ran = true;
    return OkStatus();
  });
  EXPECT_TRUE(queue.RunNext().ok());
  const Status status = queue.RunNext();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("worker 3"), HasSubstr("mbit_per_s")));
  EXPECT_FALSE(ran);
  EXPECT_EQ(queue.now_ns(), 7);
}

TEST(EventQueueDeathTest, RefusesThePast) {
  EventQueue queue;
  queue.Schedule(5, 0, [] { return OkStatus(); });
  ASSERT_TRUE(queue.RunNext().ok());
  EXPECT_DEATH(queue.Schedule(4, 0, [] { return OkStatus(); }), "past");
}

}  // namespace
}  // namespace ringtail
