#include "data/worker_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <memory>
#include <string>
#include <vector>

#include "core/machine/thread_budget.h"

namespace ringtail {
namespace {

TEST(WorkerPoolTest, RunsEveryItemOnceInOrderWithOneWorker) {
  std::vector<int> order;
  WorkerPool pool(1);
  for (int i = 0; i < 100; ++i) {
    pool.Submit([&order, i](int worker) {
      EXPECT_EQ(worker, 0);
      order.push_back(i);
    });
  }
  pool.WaitUntilIdle();
  ASSERT_EQ(order.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

// More workers than cores: each item waits for all others to have started.
TEST(WorkerPoolTest, HasTheRequestedNumberOfThreads) {
  constexpr int kWorkers = 8;
  std::latch all_running(kWorkers);
  std::vector<std::atomic<int>> used(kWorkers);
  WorkerPool pool(kWorkers);
  for (int i = 0; i < kWorkers; ++i) {
    pool.Submit([&](int worker) {
      ++used[worker];
      all_running.arrive_and_wait();
    });
  }
  pool.WaitUntilIdle();
  for (const std::atomic<int>& count : used)
    EXPECT_EQ(count, 1);  // no two running items had the same number
}

TEST(WorkerPoolTest, ThreadsHaveANameAndALowPriority) {
  const int own_priority = getpriority(PRIO_PROCESS, gettid());
  std::string name;
  int priority = own_priority;
  WorkerPool pool(1);
  pool.Submit([&](int) {
    name = ThreadName();
    priority = getpriority(PRIO_PROCESS, gettid());
  });
  pool.WaitUntilIdle();
  EXPECT_EQ(name, "rt-loader");
  EXPECT_GT(priority, own_priority);
  EXPECT_EQ(getpriority(PRIO_PROCESS, gettid()), own_priority);
  EXPECT_NE(ThreadName(), "rt-loader");
}

// Opens a latch on destruction.
struct OpenAtEnd {
  explicit OpenAtEnd(std::latch* latch) : latch(latch) {}
  ~OpenAtEnd() { latch->count_down(); }
  std::latch* latch;
};

// The running item continues only once the queued one has been destroyed: this shows, without a
// time limit or a sleep, that Cancel drops first and then waits.
TEST(WorkerPoolTest, CancelDropsQueuedItemsAndWaitsForRunningOnes) {
  WorkerPool pool(1);
  std::latch started(1), dropped(1);
  bool finished = false, ran = false;
  pool.Submit([&](int) {
    started.count_down();
    dropped.wait();
    finished = true;
  });
  started.wait();
  pool.Submit([&ran, guard = std::make_shared<OpenAtEnd>(&dropped)](int) { ran = true; });
  pool.Cancel();
  EXPECT_TRUE(finished);
  EXPECT_FALSE(ran);
  pool.Submit([&](int) { ran = true; });  // the pool still works
  pool.WaitUntilIdle();
  EXPECT_TRUE(ran);
}

// Pools share the threads of oneTBB, but neither items nor worker numbers.
TEST(WorkerPoolTest, PoolsSideBySideRunTheirOwnItems) {
  constexpr int kRounds = 50, kItems = 40;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::atomic<int>> first(2), second(3);  // items by worker
    {
      WorkerPool first_pool(2), second_pool(3);
      for (int i = 0; i < kItems; ++i) {
        first_pool.Submit([&](int worker) { ++first.at(worker); });
        second_pool.Submit([&](int worker) { ++second.at(worker); });
      }
      first_pool.WaitUntilIdle();
      second_pool.WaitUntilIdle();
    }
    EXPECT_EQ(first[0] + first[1], kItems);
    EXPECT_EQ(second[0] + second[1] + second[2], kItems);
  }
}

}  // namespace
}  // namespace ringtail
