#include "core/machine/core_counters.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/machine/processor_time.h"
#include "core/machine/thread_budget.h"

namespace ringtail {
namespace {

constexpr double kWork = 0.02;  // seconds of processor time

void Work() {
  const double begin = ThreadSeconds();
  while (ThreadSeconds() - begin < kWork) {
  }
}

TEST(NamedThreadsTest, HaveTheTimeOfThreadsWithTheName) {
  std::atomic<int> stage = 0;
  std::thread named([&] {
    SetThreadName("rt-test-work");
    stage = 1;
    stage.wait(1);
    Work();
    stage = 3;
    stage.notify_all();
    stage.wait(3);
  });
  while (stage == 0) std::this_thread::yield();
  NamedThreads threads("rt-test-work"), others("rt-test-none");
  EXPECT_EQ(threads.size(), 1);
  EXPECT_EQ(others.size(), 0);
  Work();  // of a thread with another name
  EXPECT_LT(threads.Ran(), kWork / 2);
  stage = 2;
  stage.notify_all();
  while (stage != 3) stage.wait(2);
  EXPECT_GE(threads.Ran(), 0.9 * kWork);  // since the call before
  EXPECT_LT(threads.Ran(), kWork / 2);
  EXPECT_EQ(others.Ran(), 0);
  EXPECT_GE(threads.LongestDelay(), 0);
  stage = 4;
  stage.notify_all();
  named.join();
  threads.Find();
  EXPECT_EQ(threads.size(), 0);
  EXPECT_EQ(threads.Ran(), 0);
}

}  // namespace
}  // namespace ringtail
