// What every transport that outlives its losses must do (dist/transport/transport.h, Tolerance),
// for each of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/mutex.h"
#include "tests/dist/test_world.h"
#include "tests/dist/transport/proxied_world.h"

namespace ringtail {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;

constexpr size_t kMiB = size_t{1} << 20;

MessageLabel Label(uint64_t collective) { return {.tag = {.collective = collective}, .check = 77}; }

class Losses : public PeerLossObserver {
 public:
  void OnPeerLost(int peer, const Status& cause) override RT_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    EXPECT_TRUE(by_peer_.emplace(peer, cause).second) << "told twice of rank " << peer;
    changed_.NotifyAll();
  }
  // Waits until there are so many.
  std::map<int, Status> Await(size_t count) RT_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    while (by_peer_.size() < count) {
      if (!changed_.WaitUntil(&mutex_, TestDeadline())) break;
    }
    return by_peer_;
  }
  std::map<int, Status> all() { return Await(0); }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::map<int, Status> by_peer_ RT_GUARDED_BY(mutex_);
};

class ToleranceTest : public ::testing::TestWithParam<WorldKind> {
 protected:
  // A world in which every rank is tolerant.
  void Make(int world_size) {
    losses_.clear();
    world_ = GetParam().make(world_size);
    for (int rank = 0; rank < world_size; ++rank) {
      losses_.push_back(std::make_shared<Losses>());
      const Status tolerant = world_[rank]->TolerateLosses(losses_[rank]);
      ASSERT_TRUE(tolerant.ok()) << tolerant.ToString();
    }
  }
  void ExpectTraffic(int from, int to, uint64_t collective, size_t bytes = 5 * kMiB) {
    CompletionQueue queue;
    const std::vector<std::byte> sent = PatternBytes(bytes, collective);
    std::vector<std::byte> received(bytes);
    world_[to]->Receive(from, Label(collective), received, {&queue, 0});
    world_[from]->Send(to, Label(collective), sent, {&queue, 1});
    for (const Status& status : Await(&queue, 2)) EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(received, sent);
  }
  // That what is new between them fails at once, in both directions.
  void ExpectLost(int rank, int peer, const std::string& cause) {
    CompletionQueue queue;
    std::vector<std::byte> memory(10);
    world_[rank]->Receive(peer, Label(1'000'000), memory, {&queue, 0});
    world_[rank]->Send(peer, Label(1'000'000), memory, {&queue, 1});
    for (const Status& status : Await(&queue, 2)) EXPECT_THAT(status.message(), HasSubstr(cause));
  }

  std::vector<std::shared_ptr<Losses>> losses_;  // by rank
  World world_;
};

INSTANTIATE_TEST_SUITE_P(Every, ToleranceTest, ::testing::ValuesIn(TolerantWorldKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(ToleranceTest, ARankThatAbortsIsLostByItself) {
  Make(4);
  CompletionQueue with_lost, with_living;
  std::vector<std::byte> from_lost(10), from_living(10);
  const std::vector<std::byte> sent = PatternBytes(10, 3);
  world_[0]->Receive(2, Label(1), from_lost, {&with_lost, 0});
  world_[0]->Receive(1, Label(1), from_living, {&with_living, 0});
  world_[2]->Abort(DataLoss("the disk is gone"));

  const Status lost = Await(&with_lost, 1)[0];
  EXPECT_EQ(lost.code(), StatusCode::kDataLoss);
  EXPECT_EQ(lost.message(),
            "receiving 10 bytes from rank 2 (collective 1, step 0, segment 0): rank 2 stopped: the "
            "disk is gone");
  for (const int rank : {0, 1, 3}) {
    const std::map<int, Status> told = losses_[rank]->Await(1);
    ASSERT_THAT(told, ElementsAre(Key(2)));
    EXPECT_EQ(told.at(2).message(), "rank 2 stopped: the disk is gone");
    EXPECT_TRUE(world_[rank]->EndCause().ok());
    EXPECT_EQ(world_[rank]->LossOf(2).message(), "rank 2 stopped: the disk is gone");
    ExpectLost(rank, 2, "rank 2 stopped: the disk is gone");
  }
  EXPECT_TRUE(world_[0]->LossOf(1).ok());
  EXPECT_EQ(world_[2]->EndCause().message(), "the disk is gone");
  EXPECT_THAT(losses_[2]->all(), IsEmpty());

  // What waited for a living rank still does, and the others continue.
  world_[1]->Send(0, Label(1), sent, {&with_living, 1});
  for (const Status& status : Await(&with_living, 2)) EXPECT_TRUE(status.ok());
  EXPECT_EQ(from_living, sent);
  ExpectTraffic(0, 1, 5);
  ExpectTraffic(3, 0, 6);
  ExpectTraffic(1, 3, 7);
}

TEST_P(ToleranceTest, ARankThatIsGivenUpHearsItAndEnds) {
  Make(3);
  CompletionQueue pending, of_lost;
  std::vector<std::byte> memory(10), their_memory(10);
  world_[0]->Receive(1, Label(1), memory, {&pending, 0});
  world_[1]->Receive(2, Label(1), their_memory, {&of_lost, 0});
  world_[0]->GiveUp(1, {StatusCode::kUnavailable, "it has sent nothing for 10 s"});

  const Status lost = Await(&pending, 1)[0];
  EXPECT_EQ(lost.code(), StatusCode::kUnavailable);
  EXPECT_EQ(lost.message(),
            "receiving 10 bytes from rank 1 (collective 1, step 0, segment 0): it has sent nothing "
            "for 10 s");
  EXPECT_EQ(losses_[0]->Await(1).at(1).message(), "it has sent nothing for 10 s");

  const std::string told = "rank 0 has given up this rank: it has sent nothing for 10 s";
  EXPECT_THAT(Await(&of_lost, 1)[0].message(), HasSubstr(told));
  EXPECT_EQ(world_[1]->EndCause().message(), told);
  EXPECT_THAT(losses_[2]->Await(1).at(1).message(),
              AllOf(HasSubstr("rank 1 stopped"), HasSubstr(told)));
  ExpectTraffic(2, 0, 3);

  // Once more, or for a rank that has ended: nothing new.
  world_[0]->GiveUp(1, Cancelled("too late to be the cause"));
  ExpectLost(0, 1, "it has sent nothing for 10 s");
}

TEST_P(ToleranceTest, ARankThatLeavesIsLostOnlyToThoseThatWaitForIt) {
  Make(3);
  CompletionQueue queue;
  std::vector<std::byte> memory(10);
  world_[0]->Receive(2, Label(1), memory, {&queue, 0});
  world_[2].reset();
  EXPECT_THAT(Await(&queue, 1)[0].message(), HasSubstr("rank 2 has left the world"));
  EXPECT_EQ(losses_[0]->Await(1).at(2).message(), "rank 2 has left the world");
  EXPECT_THAT(losses_[1]->all(), IsEmpty());
  ExpectTraffic(0, 1, 3);
  ExpectTraffic(1, 0, 3);
}

TEST_P(ToleranceTest, ARankThatBreaksTheRulesIsGivenUp) {
  Make(3);
  CompletionQueue received, sent;
  const std::vector<std::byte> message(100);
  std::vector<std::byte> memory(96);
  world_[1]->Receive(0, Label(3), memory, {&received, 0});
  world_[0]->Send(1, Label(3), message, {&sent, 0});
  EXPECT_THAT(Await(&received, 1)[0].message(), HasSubstr("100 bytes, but 96 were expected"));
  Await(&sent, 1);  // sent or failed: both are right
  EXPECT_THAT(losses_[1]->Await(1).at(0).message(), HasSubstr("100 bytes, but 96"));
  EXPECT_THAT(losses_[2]->Await(1).at(0).message(), HasSubstr("rank 1 has given up this rank"));
  ExpectTraffic(1, 2, 4);
}

TEST_P(ToleranceTest, ARankThatIsNotTolerantEndsWithTheFirstLoss) {
  losses_ = {std::make_shared<Losses>()};
  world_ = GetParam().make(3);
  ASSERT_TRUE(world_[0]->TolerateLosses(losses_[0]).ok());
  world_[2]->Abort(Cancelled("enough"));
  const std::map<int, Status> lost = losses_[0]->Await(2);
  EXPECT_EQ(lost.at(1).message(), "rank 2 stopped: enough");
  EXPECT_EQ(lost.at(2).message(), "rank 2 stopped: enough");
  EXPECT_TRUE(world_[0]->EndCause().ok());
  EXPECT_EQ(world_[1]->EndCause().message(), "rank 2 stopped: enough");
}

TEST_P(ToleranceTest, AbortIsStillTheEndOfThisRank) {
  Make(3);
  CompletionQueue queue;
  std::vector<std::byte> memory(10);
  world_[0]->Receive(1, Label(1), memory, {&queue, 0});
  world_[0]->Receive(2, Label(1), memory, {&queue, 1});
  world_[2]->Abort(Cancelled("first"));
  losses_[0]->Await(1);
  world_[0]->Abort(Cancelled("second"));
  const std::vector<Status> ended = Await(&queue, 2);
  EXPECT_THAT(ended[0].message(), HasSubstr("second"));
  EXPECT_THAT(ended[1].message(), HasSubstr("first"));
  ExpectLost(0, 1, "second");
}

// Every operation with the lost rank completes, whenever it goes, and then its memory is let go of:
// sanitizers watch. None with another rank fails.
TEST_P(ToleranceTest, ALossAmidTrafficFailsNothingElse) {
  for (size_t before = 0; before < 24; before += 10) {
    Make(3);
    constexpr size_t kMessages = 24, kBytes = kMiB / 4;
    OnEveryRank(3, [&](int rank) {
      CompletionQueue queue;
      std::vector<std::vector<std::byte>> sent, received;
      std::vector<int> peers;
      for (size_t i = 0; i < kMessages; ++i) {
        for (int peer = 0; peer < 3; ++peer) {
          if (peer == rank) continue;
          peers.push_back(peer);
          sent.push_back(PatternBytes(kBytes, rank * 31 + peer * 7 + i));
          received.emplace_back(kBytes);
          const size_t id = 2 * (peers.size() - 1);
          world_[rank]->Send(peer, Label(i), sent.back(), {&queue, id});
          world_[rank]->Receive(peer, Label(i), received.back(), {&queue, id + 1});
        }
        if (rank == 2 && i == before) world_[rank]->Abort(Cancelled("enough"));
      }
      const std::vector<Status> done = Await(&queue, 2 * peers.size());
      for (size_t k = 0; k < peers.size() && rank != 2; ++k) {
        if (peers[k] == 2) continue;
        EXPECT_TRUE(done[2 * k].ok() && done[2 * k + 1].ok()) << done[2 * k + 1].ToString();
        EXPECT_EQ(received[k], PatternBytes(kBytes, peers[k] * 31 + rank * 7 + k / 2));
      }
    });
    world_.clear();
  }
}

// All but one are lost at once, while all are told of it.
TEST_P(ToleranceTest, ARankMayBeTheLast) {
  Make(4);
  OnEveryRank(4, [&](int rank) {
    if (rank > 0) world_[rank]->Abort(Cancelled("rank " + std::to_string(rank) + " has enough"));
  });
  EXPECT_EQ(losses_[0]->Await(3).size(), 3);
  EXPECT_TRUE(world_[0]->EndCause().ok());
  for (int peer = 1; peer < 4; ++peer) ExpectLost(0, peer, "rank " + std::to_string(peer));
}

// Each says of the other what the other says of it: were a rank told, both would end.
TEST(ToleranceOverACutWireTest, BothLoseTheOtherAndNeitherEnds) {
  ProxiedWorld world({});
  std::vector<std::shared_ptr<Losses>> losses;
  for (const auto& rank : world.ranks) {
    losses.push_back(std::make_shared<Losses>());
    ASSERT_TRUE(rank->TolerateLosses(losses.back()).ok());
  }
  CompletionQueue queue;
  std::vector<std::byte> memory(10);
  world.ranks[1]->Receive(0, Label(2), memory, {&queue, 0});
  world.proxy->Begin(WireProxy::kToListener, [](std::vector<std::byte>*) { return false; });
  const std::vector<std::byte> message(10);
  world.ranks[1]->Send(0, Label(1), message, {&queue, 1});
  EXPECT_THAT(Await(&queue, 2)[0].message(), HasSubstr("lost rank 0"));
  for (const int rank : {0, 1}) {
    EXPECT_THAT(losses[rank]->Await(1).at(1 - rank).message(),
                HasSubstr("lost rank " + std::to_string(1 - rank)));
    EXPECT_TRUE(world.ranks[rank]->EndCause().ok());
  }
}

TEST(ToleranceOverMpiTest, IsRefusedAndChangesNothing) {
  for (const WorldKind& kind : AllWorldKinds()) {
    if (kind.name != "mpi") continue;
    const World world = kind.make(2);
    EXPECT_EQ(world[0]->TolerateLosses(nullptr).code(), StatusCode::kUnimplemented);
    world[0]->GiveUp(1, Cancelled("it does not answer"));
    EXPECT_EQ(world[0]->EndCause().message(), "it does not answer");
  }
}

}  // namespace
}  // namespace ringtail
