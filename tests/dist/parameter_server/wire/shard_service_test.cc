#include "dist/parameter_server/wire/shard_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "dist/parameter_server/presets.h"
#include "tests/dist/parameter_server/wire/served_weights.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int kA = 0, kB = 1;

ServerMessage PushOf(int64_t version, int64_t clock, const Ticket& ticket) {
  return {.kind = MessageKind::kPush,
          .statistics = true,
          .clock = clock,
          .version = version,
          .first = ticket.first,
          .rows = static_cast<int32_t>(ticket.rows),
          .loss_sum = 3,
          .bytes = 2 * sizeof(float)};
}

class ShardServiceTest : public testing::Test {
 protected:
  explicit ShardServiceTest(AsynchronousConfig::Rule rule = AsynchronousConfig::ASYNCHRONOUS)
      : served_(PublishedRule(rule), 2, 100), service_(served_.service()) {
    service_->Join(kA, 4);
    service_->Join(kB, 4);
  }
  std::vector<ServerReply> Ask(int worker) {
    return service_->Handle({.worker = worker, .message = {.kind = MessageKind::kAsk}});
  }
  std::vector<ServerReply> Pull(int worker, uint64_t number = 0) {
    const ServerMessage pull{.kind = MessageKind::kPull};
    EXPECT_TRUE(service_->Check(worker, pull).ok());
    return service_->Handle({.worker = worker, .number = number, .message = pull});
  }
  std::vector<ServerReply> Push(int worker, const ServerMessage& push,
                                const std::vector<float>& gradient) {
    const Status fits = service_->Check(worker, push);
    EXPECT_TRUE(fits.ok()) << fits.message();
    return service_->Handle({.worker = worker,
                             .message = push,
                             .gradient = BufferOf(gradient),
                             .statistics = BufferOf({static_cast<float>(worker)})});
  }

  ServedWeights served_;
  ShardService* const service_;
};

class SynchronousServiceTest : public ShardServiceTest {
 protected:
  SynchronousServiceTest() : ShardServiceTest(AsynchronousConfig::SYNCHRONOUS) {}
};

TEST_F(ShardServiceTest, AnswersEachRequest) {
  EXPECT_EQ(Ask(kA)[0].message.kind, MessageKind::kTicket);
  const auto pulled = Pull(kA, 7);
  ASSERT_THAT(pulled, SizeIs(1));
  EXPECT_EQ(pulled[0].number, 7U);
  EXPECT_THAT(pulled[0].weights->floats(), ElementsAre(1, 1));
  EXPECT_EQ(pulled[0].statistics, nullptr) << "each worker has its own";
  const auto judged = Push(kA, PushOf(0, 0, {0, 4}), {4, 8});
  ASSERT_THAT(judged, SizeIs(1));
  EXPECT_EQ(judged[0].message.kind, MessageKind::kJudged);
  EXPECT_TRUE(judged[0].message.applied);
  EXPECT_EQ(judged[0].message.version, 1);
  EXPECT_EQ(judged[0].message.first, 4) << "images applied";
  EXPECT_THAT(served_.weights(), ElementsAre(0, -1));
  EXPECT_EQ(served_.desk().tickets().UsedUpTo(), 4) << "accepted is used";
}

TEST_F(ShardServiceTest, WhatIsNotFiniteIsRefusedAndItsRowsComeAgain) {
  Ask(kA);
  ServerMessage push = PushOf(0, 0, {0, 4});
  push.finite = false;
  const auto judged = Push(kA, push, {1, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_FALSE(judged[0].message.applied);
  EXPECT_EQ(static_cast<RefusalReason>(judged[0].message.reason), RefusalReason::kNotFinite);
  EXPECT_THAT(served_.weights(), ElementsAre(1, 1));
  service_->Handle(
      {.worker = kA, .message = {.kind = MessageKind::kReturn, .finite = false, .rows = 4}});
  const auto again = Ask(kB);
  EXPECT_EQ(again[0].message.first, 0);
  const UpdateCounts counts = service_->TakeCounts();
  EXPECT_EQ(counts.refused, 1);
  EXPECT_EQ(counts.rows, 0);
  EXPECT_EQ(service_->TakeCounts().refused, 0) << "since the last call";
}

TEST_F(ShardServiceTest, NothingFromOutsideIsBelieved) {
  Ask(kA);
  const ServerMessage good = PushOf(0, 0, {0, 4});
  const auto error = [&](int worker, ServerMessage message) {
    return service_->Check(worker, message).message();
  };
  EXPECT_EQ(error(kA, good), "");
  ServerMessage bad = good;
  bad.bytes = 4;
  EXPECT_THAT(error(kA, bad), HasSubstr("another size"));
  bad = good;
  bad.statistics = false;
  EXPECT_THAT(error(kA, bad), HasSubstr("another size"));
  bad = good;
  bad.clock = 1;
  EXPECT_THAT(error(kA, bad), HasSubstr("another order"));
  bad = good;
  bad.rows = 0;
  EXPECT_THAT(error(kA, bad), HasSubstr("no images"));
  EXPECT_THAT(error(kB, good), HasSubstr("not given"));
  EXPECT_THAT(error(2, good), HasSubstr("has left"));
  EXPECT_THAT(error(kA, {.kind = MessageKind::kWeights}), HasSubstr("an answer"));
  EXPECT_THAT(error(kA, {.kind = MessageKind::kPull, .bytes = 8}), HasSubstr("more than"));
  service_->Join(2, 0);
  for (const MessageKind kind : {MessageKind::kPull, MessageKind::kAway}) {
    EXPECT_THAT(error(2, {.kind = kind}), HasSubstr("computes nothing"));
  }
  ServedWeights second(PublishedRule(AsynchronousConfig::ASYNCHRONOUS), 2, 100, /*first=*/false);
  second.service()->Join(kA, 4);
  EXPECT_THAT(second.service()->Check(kA, {.kind = MessageKind::kAsk}).message(),
              HasSubstr("elsewhere"));
}

TEST_F(ShardServiceTest, AVersionOfTheFutureIsRefused) {
  Ask(kA);
  const auto judged = Push(kA, PushOf(5, 0, {0, 4}), {1, 1});
  EXPECT_EQ(static_cast<RefusalReason>(judged[0].message.reason), RefusalReason::kFutureVersion);
  EXPECT_THAT(served_.weights(), ElementsAre(1, 1));
}

// Who waits is answered when the others are as far, and begins with the mean of the statistics.
TEST_F(SynchronousServiceTest, APullWaitsForTheOthers) {
  Ask(kA);
  Ask(kB);
  EXPECT_THAT(Pull(kA), SizeIs(1));
  EXPECT_THAT(Pull(kB), SizeIs(1));
  EXPECT_THAT(Push(kA, PushOf(0, 0, {0, 4}), {4, 0}), SizeIs(1));
  EXPECT_THAT(Pull(kA, 9), IsEmpty());
  EXPECT_THAT(service_->Check(kA, {.kind = MessageKind::kPull}).message(), HasSubstr("waits"));
  const auto replies = Push(kB, PushOf(0, 0, {4, 4}), {4, 8});
  ASSERT_THAT(replies, SizeIs(2));
  EXPECT_EQ(replies[1].worker, kA);
  EXPECT_EQ(replies[1].number, 9U);
  EXPECT_EQ(replies[1].message.version, 1);
  EXPECT_THAT(replies[1].weights->floats(), ElementsAre(0, 0));
  EXPECT_THAT(replies[1].statistics->floats(), ElementsAre(0.5));
}

TEST_F(SynchronousServiceTest, NoOneWaitsForAWorkerThatIsLost) {
  Ask(kA);
  Ask(kB);
  Pull(kA);
  Pull(kB);
  Push(kA, PushOf(0, 0, {0, 4}), {4, 0});
  EXPECT_THAT(Pull(kA, 9), IsEmpty());
  EXPECT_THAT(Ask(kA), IsEmpty()) << "in turn";
  const auto replies = service_->Remove(kB);
  ASSERT_THAT(replies, SizeIs(2));
  EXPECT_EQ(replies[0].message.kind, MessageKind::kWeights);
  EXPECT_EQ(replies[1].message.kind, MessageKind::kTicket);
  EXPECT_EQ(replies[1].message.first, 4) << "its rows come again";
}

TEST_F(SynchronousServiceTest, WhoLeavesIsAnsweredFirst) {
  Ask(kA);
  Pull(kA);
  Pull(kB);
  Ask(kB);
  Push(kA, PushOf(0, 0, {0, 4}), {4, 0});
  EXPECT_THAT(Pull(kA, 9), IsEmpty());
  const ServerMessage ask{.kind = MessageKind::kAsk};
  EXPECT_THAT(service_->Handle({.worker = kA, .number = 10, .message = ask}), IsEmpty());
  const ServerMessage snapshot{.kind = MessageKind::kSnapshot, .bytes = 2 * sizeof(int64_t)};
  const auto pushes = std::make_shared<AlignedBuffer>(2 * sizeof(int64_t));
  const std::vector<int64_t> more_than_there_are = {9, 9};
  std::memcpy(pushes->data(), more_than_there_are.data(), pushes->size_bytes());
  EXPECT_THAT(service_->Handle({kA, 11, snapshot, pushes, nullptr}), IsEmpty());
  const auto replies =
      service_->Handle({.worker = kA, .number = 12, .message = {.kind = MessageKind::kLeave}});
  ASSERT_THAT(replies, SizeIs(3));
  for (size_t i = 0; i < replies.size(); ++i) {
    EXPECT_EQ(replies[i].number, 9 + i);
    EXPECT_EQ(replies[i].message.kind, MessageKind::kEnd);
  }
}

// A snapshot has every push that it is to have, whenever it is asked for.
TEST_F(ShardServiceTest, ASnapshotWaitsForPushes) {
  Ask(kA);
  Pull(kA);
  const std::vector<int64_t> pushes = {1, 0};
  const auto counts = std::make_shared<AlignedBuffer>(2 * sizeof(int64_t));
  std::memcpy(counts->data(), pushes.data(), counts->size_bytes());
  const ServerMessage ask{.kind = MessageKind::kSnapshot, .bytes = counts->size_bytes()};
  ASSERT_TRUE(service_->Check(kB, ask).ok());
  EXPECT_THAT(service_->Handle({.worker = kB, .number = 4, .message = ask, .gradient = counts}),
              IsEmpty());
  const auto replies = Push(kA, PushOf(0, 0, {0, 4}), {4, 8});
  ASSERT_THAT(replies, SizeIs(2));
  EXPECT_EQ(replies[1].worker, kB);
  EXPECT_EQ(replies[1].number, 4U);
  EXPECT_EQ(replies[1].message.version, 1);
  EXPECT_THAT(replies[1].weights->floats(), ElementsAre(0, -1));
  EXPECT_THAT(service_->Pushes(3), ElementsAre(1, 0, 0));
}

// A network without batch norm has no running statistics, and none travel.
TEST(ShardServiceWithoutStatisticsTest, PushesAreTaken) {
  for (const auto rule : {AsynchronousConfig::ASYNCHRONOUS, AsynchronousConfig::SYNCHRONOUS}) {
    ServedWeights served(PublishedRule(rule), 2, 100, /*first=*/true, {.statistics = 0});
    ShardService* const service = served.service();
    service->Join(kA, 4);
    service->Handle({.worker = kA, .message = {.kind = MessageKind::kAsk}});
    ServerMessage push = PushOf(0, 0, {0, 4});
    EXPECT_THAT(service->Check(kA, push).message(), HasSubstr("another size"));
    push.statistics = false;
    ASSERT_TRUE(service->Check(kA, push).ok());
    const auto judged =
        service->Handle({.worker = kA, .message = push, .gradient = BufferOf({4, 8})});
    ASSERT_THAT(judged, SizeIs(1));
    EXPECT_TRUE(judged[0].message.applied);
    EXPECT_THAT(served.weights(), ElementsAre(0, -1));
    const auto pulled = service->Handle({.worker = kA, .message = {.kind = MessageKind::kPull}});
    ASSERT_THAT(pulled, SizeIs(1));
    EXPECT_FALSE(pulled[0].message.statistics);
    EXPECT_EQ(pulled[0].statistics, nullptr);
  }
}

// One weight, and two workers with tickets of one row.
class ShardServiceAwayTest : public testing::Test {
 protected:
  void Serve(AsynchronousConfig::Rule rule) {
    served_.emplace(PublishedRule(rule), 1, 1000);
    for (const int worker : {kA, kB}) served_->service()->Join(worker, 1);
  }
  std::vector<ServerReply> Ask(int worker, MessageKind kind) {
    return served_->service()->Handle({.worker = worker, .number = 8, .message = {.kind = kind}});
  }
  // False: it must wait.
  bool Step(int worker, int64_t clock, float gradient = 0) {
    const auto ticket = Ask(worker, MessageKind::kAsk);
    const auto pulled = Ask(worker, MessageKind::kPull);
    if (pulled.empty()) return false;
    served_->service()->Handle({.worker = worker,
                                .message = {.kind = MessageKind::kPush,
                                            .statistics = true,
                                            .clock = clock,
                                            .version = pulled[0].message.version,
                                            .first = ticket[0].message.first,
                                            .rows = 1,
                                            .bytes = sizeof(float)},
                                .gradient = BufferOf({gradient}),
                                .statistics = BufferOf({0})});
    return true;
  }
  std::optional<ServedWeights> served_;
};

// Who waits does not wait for one that is away, and that one comes back where the others are.
TEST_F(ShardServiceAwayTest, OneThatIsAwayHoldsNoOther) {
  Serve(AsynchronousConfig::STALE_SYNC);
  Ask(kA, MessageKind::kAway);
  for (int64_t clock = 0; clock < 20; ++clock) EXPECT_TRUE(Step(kB, clock)) << clock;
  EXPECT_TRUE(Step(kA, 0));
  for (int64_t clock = 20; clock < 25; ++clock) EXPECT_TRUE(Step(kB, clock)) << clock;
  EXPECT_FALSE(Step(kB, 25)) << "three steps ahead, at most";
  const auto cancelled = Ask(kB, MessageKind::kAway);
  ASSERT_THAT(cancelled, SizeIs(1));
  EXPECT_EQ(cancelled[0].weights, nullptr) << "its pull is answered, and not needed";
}

// A worker goes away in every round, and is not dead.
TEST_F(ShardServiceAwayTest, WhatTheRuleHasLearntOfItStays) {
  Serve(AsynchronousConfig::DANA);
  ASSERT_TRUE(Step(kA, 0, /*gradient=*/4));
  const float ahead = Ask(kB, MessageKind::kPull)[0].weights->floats()[0];
  ASSERT_NE(ahead, served_->weights()[0]) << "by its velocity";
  Ask(kA, MessageKind::kAway);
  EXPECT_EQ(Ask(kB, MessageKind::kPull)[0].weights->floats()[0], ahead);
}

TEST_F(ShardServiceAwayTest, AnUpdateTakesAsManyPushesAsBefore) {
  Serve(AsynchronousConfig::SOFT_SYNC);
  Ask(kA, MessageKind::kAway);
  EXPECT_TRUE(Step(kB, 0));
  EXPECT_EQ(served_->version(), 0);
  EXPECT_TRUE(Step(kB, 1));
  EXPECT_EQ(served_->version(), 1);
  EXPECT_TRUE(Step(kB, 2));
  Ask(kB, MessageKind::kAway);
  EXPECT_TRUE(Step(kA, 0));
  EXPECT_EQ(served_->version(), 2) << "what B has added is there";
}

}  // namespace
}  // namespace ringtail
