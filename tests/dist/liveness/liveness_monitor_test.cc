// Heartbeats over every kind of transport (dist/liveness/progress_monitor.h). Where a limit is to
// be reached it is short, and no rank that must not reach it can: ranks that wait in an
// exchange. Elsewhere limits are longer than any load.
#include "dist/liveness/progress_monitor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "core/check.h"
#include "tests/dist/test_world.h"
#include "tests/dist/transport/faulty_transport.h"

namespace ringtail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

MonitorOptions Options(milliseconds silence = 5min, milliseconds stall = 5min) {
  return {.limits = {.interval = 20ms, .silence_limit = silence, .stall_limit = stall},
          .stop_timeout = 5min,
          .describe = [](int rank) { return fmt::format("rank {} (node{})", rank, rank); }};
}

// What a rank that takes part in an exchange does: it waits for the next one.
Status WaitForNeighbour(Transport* transport) {
  CompletionQueue queue;
  std::vector<std::byte> memory(8);
  transport->Receive((transport->rank() + 1) % transport->world_size(), {}, memory, {&queue, 0});
  return Await(&queue, 1)[0];
}

class ProgressMonitorTest : public ::testing::TestWithParam<WorldKind> {};

INSTANTIATE_TEST_SUITE_P(Every, ProgressMonitorTest, ::testing::ValuesIn(AllWorldKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(ProgressMonitorTest, EndsInGoodOrder) {
  for (const int world_size : {2, 5}) {
    const World world = GetParam().make(world_size);
    OnEveryRank(world_size, [&](int rank) {
      ProgressMonitor monitor(world[rank].get(), Options());
      EXPECT_TRUE(monitor.Stop().ok());
      EXPECT_TRUE(monitor.Stop().ok()) << "again";
    });
    // Nothing is pending, and the world is as good as before.
    CompletionQueue queue;
    std::vector<std::byte> sent(8), received(8);
    world[0]->Send(1, {}, sent, {&queue, 0});
    world[1]->Receive(0, {}, received, {&queue, 1});
    for (const Status& status : Await(&queue, 2)) EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

TEST_P(ProgressMonitorTest, TheRankWhoseTrainingHangsIsNamedByAll) {
  constexpr int kWorld = 4, kCulprit = 2;
  const World world = GetParam().make(kWorld);
  OnEveryRank(kWorld, [&](int rank) {
    ProgressMonitor monitor(world[rank].get(), Options(5min, 400ms));
    Progress& progress = monitor.progress();
    progress.BeginStep(17);
    progress.Enter(rank == kCulprit ? Phase::kBackward : Phase::kExchange);
    monitor.RecordStep(0.001, 0.002);
    // The culprit's wait stands for a training thread that hangs.
    const Status status = WaitForNeighbour(world[rank].get());
    for (const Status& said : {status, monitor.Explain(status), monitor.Stop()}) {
      EXPECT_THAT(said.message(),
                  AllOf(HasSubstr("rank 2 (node2) is alive, but its training thread has not moved"),
                        HasSubstr("in backward of step 17"), Not(HasSubstr("node0")),
                        Not(HasSubstr("node1")), Not(HasSubstr("node3"))));
    }
  });
}

TEST_P(ProgressMonitorTest, SilentRanksAreNamedByAllOthers) {
  constexpr int kWorld = 4;
  const World world = GetParam().make(kWorld);
  const auto is_silent = [](int rank) { return rank == 1 || rank == 3; };
  OnEveryRank(kWorld, [&](int rank) {
    std::optional<ProgressMonitor> monitor;
    if (!is_silent(rank)) {
      MonitorOptions options = Options(3s);
      options.limits.interval = 100ms;
      monitor.emplace(world[rank].get(), options);
      monitor->progress().Enter(Phase::kExchange);
    }
    const Status status = WaitForNeighbour(world[rank].get());
    EXPECT_THAT(status.message(), AllOf(HasSubstr("rank 1 (node1) has sent nothing for"),
                                        HasSubstr("rank 3 (node3) has sent nothing for"),
                                        Not(HasSubstr("node0")), Not(HasSubstr("node2"))));
    EXPECT_FALSE(monitor && monitor->cut_off());
  });
}

TEST_P(ProgressMonitorTest, ARankThatHearsNoOtherSaysThatItIsCutOff) {
  constexpr int kWorld = 3;
  const World world = MakeFaulty(GetParam().make(kWorld), {.loss = 1});
  std::atomic<int> cut_off = 0;
  OnEveryRank(kWorld, [&](int rank) {
    ProgressMonitor monitor(world[rank].get(), Options(500ms));
    monitor.progress().Enter(Phase::kExchange);
    const Status status = WaitForNeighbour(world[rank].get());
    EXPECT_THAT(status.message(), HasSubstr("this rank, lost all the others at once"));
    EXPECT_THAT(monitor.Explain(status).message(), HasSubstr("and is itself cut off"));
    cut_off += monitor.cut_off() ? 1 : 0;
  });
  EXPECT_GE(cut_off, 1);  // the first; it tells the others, which it can reach after all
}

TEST_P(ProgressMonitorTest, AnEndThatIsNoVerdictIsPassedOnUnchanged) {
  const World world = GetParam().make(2);
  std::promise<Verdict> end;
  MonitorOptions options = Options();
  options.on_end = [&end](const Verdict& verdict) { end.set_value(verdict); };
  ProgressMonitor monitor(world[0].get(), options);
  world[1]->Abort(ResourceExhausted("the disk is full"));
  const Status status = WaitForNeighbour(world[0].get());
  EXPECT_EQ(monitor.Explain(status).message(), status.message());
  EXPECT_THAT(status.message(), HasSubstr("rank 1 stopped: the disk is full"));
  const Verdict verdict = end.get_future().get();
  EXPECT_THAT(verdict.culprits, IsEmpty());
  EXPECT_THAT(verdict.status.message(), HasSubstr("the disk is full"));
  EXPECT_THAT(monitor.Stop().message(), HasSubstr("the disk is full"));
}

TEST_P(ProgressMonitorTest, WhoLeavesWithoutStoppingEndsTheWorld) {
  const World world = GetParam().make(2);
  ProgressMonitor monitor(world[0].get(), Options());
  { const ProgressMonitor leaving(world[1].get(), Options()); }
  EXPECT_THAT(monitor.Stop().message(), HasSubstr("rank 1 (node1) leaves early"));
}

TEST_P(ProgressMonitorTest, WhoDoesNotStopWithTheOthersIsNamed) {
  const World world = GetParam().make(3);
  MonitorOptions options = Options();
  options.stop_timeout = 500ms;
  ProgressMonitor late(world[2].get(), Options());
  late.progress().BeginStep(80);
  late.progress().Enter(Phase::kCheckpoint);
  OnEveryRank(2, [&](int rank) {
    ProgressMonitor monitor(world[rank].get(), options);
    EXPECT_THAT(monitor.Stop().message(),
                HasSubstr("rank 2 (node2) has not ended its heartbeat "
                          "within 0.5 s, and is in checkpoint of step 80"));
  });
}

TEST_P(ProgressMonitorTest, RankZeroSaysWhoIsSlowAndWhenItEnds) {
  constexpr int kWorld = 3, kSlow = 1;
  const World world = GetParam().make(kWorld);
  std::promise<std::string> began, ended;
  std::atomic<int> notices = 0;
  const auto hear = [&](const std::string& notice) {
    (notices++ == 0 ? began : ended).set_value(notice);
  };
  std::shared_future<std::string> has_begun = began.get_future().share();
  std::shared_future<std::string> has_ended = ended.get_future().share();
  OnEveryRank(kWorld, [&](int rank) {
    MonitorOptions options = Options();
    options.on_notice = hear;
    options.slow_for = 50ms;
    ProgressMonitor monitor(world[rank].get(), options);
    const auto ten_steps = [&](double compute_seconds) {
      for (int i = 0; i < 10; ++i) monitor.RecordStep(compute_seconds, 1.0);
    };
    ten_steps(rank == kSlow ? 0.812 : 0.24);
    EXPECT_THAT(has_begun.get(), HasSubstr("rank 1 (node1) is slow, and the others wait for it: "
                                           "812.0 ms per step, the others 240.0 ms"));
    ten_steps(0.25);
    EXPECT_THAT(has_ended.get(), HasSubstr("rank 1 (node1) is no longer slow: 250.0 ms per step"));
    EXPECT_TRUE(monitor.Stop().ok());
  });
  EXPECT_EQ(notices, 2);
}

// ---- a peer that says what the test wants -------------------------------------------------------

// Rank 1 sends `heartbeat` as often as rank 0 takes it, `times` times.
void Tell(HeartbeatExchange* peer, Heartbeat heartbeat, int times) {
  HeartbeatExchange::Event event;
  for (int i = 0; i < times; ++i) {
    heartbeat.beats = {0, static_cast<uint32_t>(i + 1)};
    for (const HeartbeatLane lane : {HeartbeatLane::kUrgent, HeartbeatLane::kData}) {
      peer->Send(lane, heartbeat);
    }
    ASSERT_TRUE(peer->Next(&event, TestDeadline()));
    ASSERT_TRUE(event.heartbeat.ok()) << event.lost.ToString();
  }
}

TEST_P(ProgressMonitorTest, WhoWaitsForAYearIsNotBlamed) {
  const World world = GetParam().make(2);
  HeartbeatExchange peer(world[1].get());
  ProgressMonitor monitor(world[0].get(), Options(5min, 60ms));
  monitor.progress().Enter(Phase::kExchange);
  monitor.RecordStep(0.001, 0.001);
  Heartbeat waiting = {
      .phase = Phase::kExchange, .unchanged_ms = 365LL * 86400 * 1000, .step_us = 1};
  Tell(&peer, waiting, 20);
  waiting.last = true;
  waiting.beats = {0, 100};
  {
    const std::jthread ending([&] {
      HeartbeatExchange::Event event;
      while (!peer.Done()) {  // a heartbeat waits until the one before it has been taken
        peer.Send(HeartbeatLane::kUrgent, waiting);
        peer.Send(HeartbeatLane::kData, waiting);
        peer.Next(&event, std::chrono::steady_clock::now() + 20ms);
        if (!event.lost.ok()) return;
      }
    });
    EXPECT_TRUE(monitor.Stop().ok());
  }
  EXPECT_TRUE(peer.Done());
}

TEST_P(ProgressMonitorTest, TheSameYearInAnotherPhaseIsBlamed) {
  const World world = GetParam().make(2);
  HeartbeatExchange peer(world[1].get());
  ProgressMonitor monitor(world[0].get(), Options());
  peer.Send(HeartbeatLane::kUrgent, {.phase = Phase::kUpdate,
                                     .unchanged_ms = 365LL * 86400 * 1000,
                                     .step_us = 1,
                                     .beats = {0, 1}});
  EXPECT_THAT(monitor.Explain(WaitForNeighbour(world[0].get())).message(),
              HasSubstr("rank 1 (node1) is alive, but its training thread has not moved for "
                        "31536000.0 s, in update of step 0"));
}

// Bytes under the label of a heartbeat that are none, from rank 1.
std::string AnswerTo(const WorldKind& kind, std::vector<std::byte> bytes) {
  const World world = kind.make(2);
  ProgressMonitor monitor(world[0].get(), Options());
  CompletionQueue queue;
  world[1]->Send(0, HeartbeatLabel(HeartbeatLane::kUrgent, 0), bytes, {&queue, 0});
  Await(&queue, 1);
  const Status seen = WaitForNeighbour(world[0].get());
  return monitor.Explain(seen).message();
}

TEST_P(ProgressMonitorTest, GarbageEndsTheWorldAndNamesWhoSentIt) {
  EXPECT_THAT(AnswerTo(GetParam(), PatternBytes(HeartbeatBytes(2), 1)),
              HasSubstr("rank 1 (node1) sent a heartbeat that cannot be read: it begins with"));
  const auto fifth = EncodeHeartbeat({.sequence = 5, .beats = {0, 1}});
  EXPECT_THAT(AnswerTo(GetParam(), {fifth.begin(), fifth.end()}),
              HasSubstr("rank 1 (node1) sent a heartbeat that cannot be read: number 5 came as "
                        "number 0"));
  EXPECT_THAT(AnswerTo(GetParam(), PatternBytes(HeartbeatBytes(2) + 1, 1)),
              HasSubstr("the message has 73 bytes, but 72 were expected"));
}

TEST(ProgressMonitor, AloneThereIsNothingToWatch) {
  const World world = MakeTcpWorld(1);
  ProgressMonitor monitor(world[0].get(), {});
  EXPECT_EQ(monitor.Explain(Cancelled("enough")).message(), "enough");
  EXPECT_TRUE(monitor.Stop().ok());
}

}  // namespace
}  // namespace ringtail
