// Heartbeats in worlds that outlive their losses, over every kind of transport. Who must not reach
// a limit waits in an exchange, or has a limit that no load reaches.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>

#include "dist/liveness/progress_monitor.h"
#include "tests/dist/test_world.h"

namespace ringtail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

MonitorOptions Options(milliseconds stall = 5min) {
  return {.limits = {.interval = 20ms, .silence_limit = 5min, .stall_limit = stall},
          .stop_timeout = 5min,
          .describe = [](int rank) { return fmt::format("rank {} (node{})", rank, rank); }};
}

Status WaitFor(Transport* transport, int peer) {
  CompletionQueue queue;
  std::vector<std::byte> memory(8);
  transport->Receive(peer, {}, memory, {&queue, 0});
  return Await(&queue, 1)[0];
}

class TolerantMonitorTest : public ::testing::TestWithParam<WorldKind> {};

INSTANTIATE_TEST_SUITE_P(Every, TolerantMonitorTest, ::testing::ValuesIn(TolerantWorldKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(TolerantMonitorTest, WhoStopsWaitsForAllThatAreLeft) {
  constexpr int kWorld = 4;
  const World world = GetParam().make(kWorld);
  std::latch tolerant(kWorld), lost(kWorld - 1);
  Mutex mutex;
  std::vector<std::string> notices;
  OnEveryRank(kWorld, [&](int rank) {
    MonitorOptions options = Options();
    options.on_notice = [&](const std::string& notice) {
      MutexLock lock(&mutex);
      notices.push_back(notice);
    };
    ProgressMonitor monitor(world[rank].get(), options);
    ASSERT_TRUE(monitor.TolerateLosses(nullptr).ok());
    tolerant.arrive_and_wait();
    if (rank == 2) {
      world[2]->Abort(ResourceExhausted("the disk is full"));
      EXPECT_THAT(monitor.Stop().message(), HasSubstr("the disk is full"));
      return;
    }
    // By itself, or by rank 0's heartbeat, if that is quicker.
    EXPECT_THAT(WaitFor(world[rank].get(), 2).message(),
                AnyOf(HasSubstr("rank 2 stopped: the disk is full"),
                      HasSubstr("rank 0 (node0) has lost rank 2 (node2)")));
    lost.arrive_and_wait();
    EXPECT_TRUE(monitor.Check().ok());
    EXPECT_TRUE(monitor.Stop().ok());
    EXPECT_TRUE(world[rank]->EndCause().ok());
  });
  EXPECT_THAT(notices, ElementsAre("rank 2 stopped: the disk is full; the others continue without "
                                   "it"));
}

TEST_P(TolerantMonitorTest, OneThatHangsIsGivenUpAndTheOthersContinue) {
  constexpr int kWorld = 4, kCulprit = 2;
  const World world = GetParam().make(kWorld);
  std::latch tolerant(kWorld);
  OnEveryRank(kWorld, [&](int rank) {
    std::vector<int> culprits;
    MonitorOptions options = Options(400ms);
    options.on_end = [&](const Verdict& verdict) { culprits = verdict.culprits; };
    options.on_notice = [](const std::string&) {};
    ProgressMonitor monitor(world[rank].get(), options);
    monitor.progress().BeginStep(17);
    monitor.progress().Enter(Phase::kBlocked);
    monitor.RecordStep(0.001, 0.002);
    ASSERT_TRUE(monitor.TolerateLosses(nullptr).ok());
    tolerant.arrive_and_wait();
    if (rank == kCulprit) {
      monitor.progress().Enter(Phase::kBackward);
      // The wait stands for a training thread that hangs.
      const Status status = WaitFor(world[rank].get(), 3);
      EXPECT_THAT(monitor.Explain(status).message(),
                  HasSubstr("rank 2 (node2) is alive, but its training thread has not moved"));
      EXPECT_FALSE(monitor.Stop().ok());
      EXPECT_THAT(culprits, ElementsAre(kCulprit));
      return;
    }
    EXPECT_THAT(WaitFor(world[rank].get(), kCulprit).message(), HasSubstr("rank 2"));
    EXPECT_TRUE(monitor.Stop().ok());
    EXPECT_THAT(culprits, IsEmpty());
  });
}

TEST_P(TolerantMonitorTest, TheLossOfRankZeroIsTheEndOfAll) {
  constexpr int kWorld = 3;
  const World world = GetParam().make(kWorld);
  std::latch tolerant(kWorld);
  OnEveryRank(kWorld, [&](int rank) {
    ProgressMonitor monitor(world[rank].get(), Options());
    ASSERT_TRUE(monitor.TolerateLosses(nullptr).ok());
    tolerant.arrive_and_wait();
    if (rank == 0) return world[0]->Abort(DataLoss("its checkpoint is gone"));
    // No message of rank 0, but one of the other rank: it ends nevertheless.
    const Status status = WaitFor(world[rank].get(), 3 - rank);
    EXPECT_THAT(status.message(), HasSubstr("rank 0 stopped: its checkpoint is gone"));
    EXPECT_THAT(monitor.Stop().message(), HasSubstr("rank 0 stopped: its checkpoint is gone"));
    EXPECT_FALSE(world[rank]->EndCause().ok());
  });
}

// Rank 1 says nothing that can be read; rank 2 is not concerned.
TEST_P(TolerantMonitorTest, GarbageIsTheEndOfWhoSendsIt) {
  const World world = GetParam().make(3);
  MonitorOptions options = Options();
  options.on_notice = [](const std::string&) {};
  ProgressMonitor zero(world[0].get(), options), two(world[2].get(), options);
  ASSERT_TRUE(zero.TolerateLosses(nullptr).ok());
  ASSERT_TRUE(two.TolerateLosses(nullptr).ok());
  ASSERT_TRUE(world[1]->TolerateLosses(nullptr).ok());
  CompletionQueue queue;
  const std::vector<std::byte> garbage = PatternBytes(HeartbeatBytes(3), 1);
  world[1]->Send(0, HeartbeatLabel(HeartbeatLane::kUrgent, 0), garbage, {&queue, 0});
  Await(&queue, 1);
  EXPECT_THAT(WaitFor(world[1].get(), 2).message(),
              AnyOf(HasSubstr("rank 0 has given up this rank: rank 1 (node1) sent a heartbeat that "
                              "cannot be read"),
                    HasSubstr("rank 2 has given up this rank: rank 0 (node0) has lost rank 1")));
  OnEveryRank(2, [&](int rank) { EXPECT_TRUE((rank == 0 ? zero : two).Stop().ok()); });
}

}  // namespace
}  // namespace ringtail
