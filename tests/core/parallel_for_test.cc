#include "core/parallel_for.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace ringtail {
namespace {

using Range = std::pair<int64_t, int64_t>;

class ParallelForTest : public ::testing::Test {
 protected:
  void TearDown() override { SetNumComputeThreads(threads_before_); }

  // The ranges of one loop, in order.
  static std::vector<Range> Ranges(int64_t count, int64_t grain) {
    std::mutex mutex;
    std::vector<Range> ranges;
    ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
      const std::lock_guard lock(mutex);
      ranges.emplace_back(begin, end);
    });
    std::sort(ranges.begin(), ranges.end());
    return ranges;
  }

  const int threads_before_ = NumComputeThreads();
};

TEST_F(ParallelForTest, CoversEveryIndexOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    SetNumComputeThreads(threads);
    for (const int64_t count : {1, 2, 7, 8, 9, 1000}) {
      for (const int64_t grain : {-1, 0, 1, 3, 1000, 5000}) {
        const std::vector<Range> ranges = Ranges(count, grain);
        ASSERT_LE(static_cast<int>(ranges.size()), threads);
        int64_t reached = 0;
        for (const auto& [begin, end] : ranges) {
          EXPECT_EQ(begin, reached);
          EXPECT_LT(begin, end);
          EXPECT_GE(end - begin, std::min(grain, count));
          reached = end;
        }
        EXPECT_EQ(reached, count) << threads << " threads, grain " << grain;
      }
    }
  }
}

TEST_F(ParallelForTest, UsesAllThreadsWhenThereIsEnoughToDo) {
  SetNumComputeThreads(4);
  EXPECT_EQ(Ranges(1000, 1).size(), 4u);
  EXPECT_EQ(Ranges(1000, 400).size(), 2u);
}

TEST_F(ParallelForTest, EveryIndexIsTakenOnceByAThreadThatThereIs) {
  for (const int threads : {1, 2, 5}) {
    SetNumComputeThreads(threads);
    for (const int64_t count : {0, 1, 3, 100}) {
      std::mutex mutex;
      std::vector<int> taken(count);
      ParallelForEach(count, [&](int64_t i, int64_t thread) {
        const std::lock_guard lock(mutex);
        ++taken[i];
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, threads);
      });
      EXPECT_EQ(taken, std::vector<int>(count, 1)) << threads << " threads";
    }
  }
}

TEST_F(ParallelForTest, RangesAreAFunctionOfTheArguments) {
  SetNumComputeThreads(3);
  const std::vector<Range> expected = {{0, 4}, {4, 7}, {7, 10}};
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Ranges(10, 1), expected);
}

TEST_F(ParallelForTest, NothingToDo) {
  EXPECT_TRUE(Ranges(0, 1).empty());
  EXPECT_TRUE(Ranges(-5, 1).empty());
}

TEST_F(ParallelForTest, HugeCountsDoNotOverflow) {
  SetNumComputeThreads(8);
  constexpr int64_t kHuge = int64_t{1} << 62;
  const std::vector<Range> ranges = Ranges(kHuge, 1);
  ASSERT_EQ(ranges.size(), 8u);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(ranges[i].first, kHuge / 8 * i);
}

TEST_F(ParallelForTest, ThreadsCanBeSet) {
  SetNumComputeThreads(3);
  EXPECT_EQ(NumComputeThreads(), 3);
}

TEST(ParallelForDeathTest, NoThreadsAreABug) {
  EXPECT_DEATH(SetNumComputeThreads(0), "at least 1");
}

}  // namespace
}  // namespace ringtail
