#include "apps/emulator/clock/worker_cores.h"

#include <gtest/gtest.h>

namespace ringtail {
namespace {

// Worker 3, of which all others are independent.
struct Worker {
  void RunAll() {
    while (!queue.empty()) ASSERT_TRUE(queue.RunNext().ok());
  }
  void ComputesFrom(int64_t time_ns, int64_t until_ns) {
    queue.Schedule(time_ns, 3, [this, until_ns] {
      cores.Computes(3, until_ns);
      return OkStatus();
    });
  }
  // When work that alone takes `alone_ns` ends.
  int64_t EndOfWork(int64_t alone_ns) {
    int64_t end_ns = -1;
    cores.WorkBeside(3, alone_ns, [this, &end_ns] {
      end_ns = queue.now_ns();
      return OkStatus();
    });
    RunAll();
    return end_ns;
  }
  EventQueue queue;
  WorkerCores cores{&queue};
};

TEST(WorkerCoresTest, AloneWorkIsNotSlower) {
  Worker worker;
  worker.cores.Computes(2, 1'000'000);
  EXPECT_EQ(worker.EndOfWork(1000), 1000);
  EXPECT_EQ(worker.cores.TakeMissingNs(3), 0);
}

TEST(WorkerCoresTest, OneCoreIsDividedInHalves) {
  Worker worker;
  worker.cores.Computes(3, 1'000'000);
  EXPECT_EQ(worker.EndOfWork(1000), 2000);
  EXPECT_EQ(worker.cores.TakeMissingNs(3), 1000);
  EXPECT_EQ(worker.cores.TakeMissingNs(3), 0);
}

// Nine threads on eight cores: each has 8/9 of one, and of the eight cores' work 1/9 is not done.
TEST(WorkerCoresTest, OfEightCoresComputingLosesLess) {
  Worker worker;
  worker.cores.set_cores(8);
  worker.cores.Computes(3, 1'000'000);
  EXPECT_EQ(worker.EndOfWork(8000), 9000);
  EXPECT_EQ(worker.cores.TakeMissingNs(3), 1000);
}

TEST(WorkerCoresTest, WorkIsFasterWhenComputingHasEnded) {
  Worker worker;
  worker.cores.Computes(3, 600);
  EXPECT_EQ(worker.EndOfWork(1000), 600 + 700);
  EXPECT_EQ(worker.cores.TakeMissingNs(3), 300);
}

// 0 .. 600 and 600 .. 1000 at half speed, the rest at full speed.
TEST(WorkerCoresTest, WorkMeetsWhatIsComputedNext) {
  Worker worker;
  worker.cores.Computes(3, 600);
  worker.ComputesFrom(600, 1000);
  EXPECT_EQ(worker.EndOfWork(550), 1050);
  EXPECT_EQ(worker.cores.TakeMissingNs(3), 500);
}

TEST(WorkerCoresTest, WhatIsTakenFromNobodyIsNotMissing) {
  Worker worker;
  worker.cores.set_cores(4);
  worker.cores.Take(3, 1e-6);
  EXPECT_EQ(worker.cores.TakeMissingNs(3), 0);
  worker.cores.Computes(3, 10);
  worker.cores.Take(3, 1e-6);
  worker.cores.TakeThread(3, 4e-6);
  EXPECT_EQ(worker.cores.TakeMissingNs(3), 2000);
}

}  // namespace
}  // namespace ringtail
