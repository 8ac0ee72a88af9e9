#include "core/mutex.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>
#include <vector>

namespace ringtail {
namespace {

TEST(Mutex, ExcludesOtherThreads) {
  constexpr int kThreads = 4, kRounds = 10'000;
  Mutex mutex;
  int64_t count = 0;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        const MutexLock lock(&mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, int64_t{kThreads} * kRounds);
}

TEST(ConditionVariable, HandsItemsOverInOrder) {
  constexpr int kItems = 1000;
  Mutex mutex;
  ConditionVariable not_empty;
  std::deque<int> items;
  std::thread producer([&] {
    for (int i = 0; i < kItems; ++i) {
      {
        const MutexLock lock(&mutex);
        items.push_back(i);
      }
      not_empty.NotifyOne();
    }
  });
  for (int i = 0; i < kItems; ++i) {
    const MutexLock lock(&mutex);
    while (items.empty()) not_empty.Wait(&mutex);
    EXPECT_EQ(items.front(), i);
    items.pop_front();
  }
  producer.join();
}

TEST(ConditionVariable, AWaitEndsAtItsDeadlineAndHoldsTheMutexAgain) {
  Mutex mutex;
  ConditionVariable never;
  const MutexLock lock(&mutex);
  EXPECT_FALSE(never.WaitUntil(&mutex, std::chrono::steady_clock::now()));
  std::thread([&] {
    never.NotifyAll();
  }).join();  // without a waiting thread: no effect, no deadlock
}

}  // namespace
}  // namespace ringtail
