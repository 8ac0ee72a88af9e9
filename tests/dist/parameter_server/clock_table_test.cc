#include "dist/parameter_server/clock_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/random.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The drawing of the header.
TEST(ClockTableTest, AsDrawn) {
  constexpr int kA = 0, kB = 1, kC = 2, kD = 3;
  ClockTable table(2);
  for (const int worker : {kA, kB, kC}) table.Join(worker);
  for (int i = 0; i < 5; ++i) {
    for (const int worker : {kA, kB, kC}) table.Tick(worker);
  }
  table.Tick(kA);
  table.Tick(kA);
  EXPECT_EQ(table.Min(), 5);
  EXPECT_TRUE(table.MayStart(kA));
  table.Tick(kA);
  EXPECT_FALSE(table.MayStart(kA));
  EXPECT_THAT(table.Slowest(), ElementsAre(kB, kC));
  table.Tick(kB);
  EXPECT_EQ(table.Min(), 5);
  EXPECT_FALSE(table.MayStart(kA));
  table.Remove(kC);
  EXPECT_EQ(table.Min(), 6);
  EXPECT_TRUE(table.MayStart(kA));
  table.Join(kD);
  EXPECT_EQ(table.clock(kD), 6);
  EXPECT_TRUE(table.MayStart(kA));
}

TEST(ClockTableTest, BoundZeroIsInStepAndUnboundedNeverWaits) {
  ClockTable in_step(0), free(INT64_MAX);
  for (ClockTable* table : {&in_step, &free}) {
    table->Join(0);
    table->Join(1);
    table->Tick(0);
  }
  EXPECT_FALSE(in_step.MayStart(0));
  EXPECT_TRUE(free.MayStart(0));
  for (int i = 0; i < 1000; ++i) free.Tick(0);
  EXPECT_TRUE(free.MayStart(0));
  in_step.Tick(1);
  EXPECT_TRUE(in_step.MayStart(0));
}

// Three workers, one backup: two of them suffice for the next step, and the third continues with
// them.
TEST(ClockTableTest, ABackupWorkerIsNotWaitedFor) {
  ClockTable table(0, 1);
  for (const int worker : {0, 1, 2}) table.Join(worker);
  table.Tick(0);
  EXPECT_FALSE(table.MayStart(0));
  table.Tick(1);
  EXPECT_TRUE(table.MayStart(0));
  EXPECT_EQ(table.Min(), 1);
  table.Tick(0);
  table.Tick(1);
  EXPECT_THAT(table.Slowest(), ElementsAre(0, 1, 2));
  table.CatchUp(2);
  EXPECT_EQ(table.clock(2), 2);
}

TEST(ClockTableTest, WhoJoinsAnEmptyTableBeginsWhereTheLastEnded) {
  ClockTable table(1);
  table.Join(0);
  for (int i = 0; i < 7; ++i) table.Tick(0);
  table.Remove(0);
  table.Remove(0);
  EXPECT_THAT(table.workers(), IsEmpty());
  EXPECT_THAT(table.Slowest(), IsEmpty());
  table.Join(1);
  EXPECT_EQ(table.clock(1), 7);
}

// The definition, without any cleverness.
class PlainTable {
 public:
  PlainTable(int64_t bound, int stragglers) : bound_(bound), stragglers_(stragglers) {}
  void Join(int worker) { clocks_.emplace_back(worker, min_); }
  void Remove(int worker) {
    std::erase_if(clocks_, [&](const auto& entry) { return entry.first == worker; });
    Raise();
  }
  void Set(int worker, int64_t clock) {
    for (auto& entry : clocks_) {
      if (entry.first == worker) entry.second = clock;
    }
    Raise();
  }
  int64_t clock(int worker) const {
    for (const auto& entry : clocks_) {
      if (entry.first == worker) return entry.second;
    }
    return -1;
  }
  bool MayStart(int worker) const { return clock(worker) <= min_ + bound_; }
  int64_t min() const { return min_; }
  const std::vector<std::pair<int, int64_t>>& clocks() const { return clocks_; }

 private:
  void Raise() {
    if (clocks_.empty()) return;
    std::vector<int64_t> sorted;
    for (const auto& entry : clocks_) sorted.push_back(entry.second);
    std::ranges::sort(sorted);
    min_ = std::max(min_, sorted[std::min<size_t>(stragglers_, sorted.size() - 1)]);
  }
  const int64_t bound_;
  const int stragglers_;
  std::vector<std::pair<int, int64_t>> clocks_;
  int64_t min_ = 0;
};

void ExpectSame(const ClockTable& table, const PlainTable& plain) {
  ASSERT_EQ(table.Min(), plain.min());
  ASSERT_EQ(table.size(), plain.clocks().size());
  for (const auto& [worker, clock] : plain.clocks()) {
    ASSERT_EQ(table.clock(worker), clock);
    ASSERT_EQ(table.MayStart(worker), plain.MayStart(worker));
  }
}

// Workers that obey the bound, and sometimes die, join, or do a step for nothing.
void PlayStory(uint64_t number) {
  Rng rng(RngKey(number).With(kTestStream));
  const auto bound = static_cast<int64_t>(rng.Below(4));
  const int stragglers = rng.Below(4) == 0 ? 1 : 0;
  ClockTable table(bound, stragglers);
  PlainTable plain(bound, stragglers);
  int next = 0;
  bool could_start = true;  // never a table in which all wait
  for (int event = 0; event < 24; ++event) {
    const uint64_t kind = plain.clocks().empty() ? 0 : rng.Below(16);
    if (kind < 2 && plain.clocks().size() < 6) {
      table.Join(next);
      plain.Join(next++);
    } else if (!plain.clocks().empty()) {
      const int worker = plain.clocks()[rng.Below(plain.clocks().size())].first;
      if (kind == 2) {
        table.Remove(worker);
        plain.Remove(worker);
      } else if (kind == 3) {
        table.CatchUp(worker);
        plain.Set(worker, std::max(plain.clock(worker) + 1, plain.min()));
      } else if (plain.MayStart(worker)) {
        table.Tick(worker);
        plain.Set(worker, plain.clock(worker) + 1);
      }
    }
    ExpectSame(table, plain);
    if (testing::Test::HasFatalFailure()) return;
    could_start &=
        plain.clocks().empty() || std::ranges::any_of(plain.clocks(), [&](const auto& entry) {
          return table.MayStart(entry.first);
        });
  }
  ASSERT_TRUE(could_start);
}

TEST(ClockTableTest, IsTheDefinitionInAnyStory) {
  constexpr uint64_t kStories = 100'000;
  for (uint64_t number = 0; number < kStories; ++number) {
    PlayStory(number);
    ASSERT_FALSE(HasFatalFailure()) << "story " << number;
  }
}

}  // namespace
}  // namespace ringtail
