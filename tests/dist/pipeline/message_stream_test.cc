// Streams between ranks that are threads: whole schedules with their messages, slots that are used
// again, errors that name the message.
#include "dist/pipeline/message_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "dist/pipeline/schedule.h"
#include "dist/transport/in_process.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

constexpr size_t kBytes = 1000;

struct Numbers {
  uint64_t sent_on = 0, received_on = 0, sent_back = 0, received_back = 0;
};

StreamEnd EndOf(Transport* transport, int peer, uint64_t* next, const char* what, int slots) {
  return {.transport = transport,
          .peer = peer,
          .channel = Channel(40),
          .next = next,
          .bytes = kBytes,
          .what = what,
          .slots = slots,
          .stall_timeout = std::chrono::seconds(20)};
}

std::byte Content(PassKind pass, int step, int micro_batch, int stage) {
  return static_cast<std::byte>(step * 101 + micro_batch * 7 + stage * 3 +
                                (pass == PassKind::kForward ? 0 : 50));
}

// One stage of several steps; counts messages whose content is wrong.
int RunStage(const PipelineShape& shape, int steps, int slots, Transport* transport) {
  const int stage = transport->rank(), last = shape.stages - 1;
  Numbers before, after;
  std::unique_ptr<ReceiveStream> activations, gradients;
  std::unique_ptr<SendStream> on, back;
  if (stage > 0) {
    activations = std::make_unique<ReceiveStream>(
        EndOf(transport, stage - 1, &before.received_on, "activation", slots));
    back = std::make_unique<SendStream>(
        EndOf(transport, stage - 1, &before.sent_back, "gradient", slots));
  }
  if (stage < last) {
    on = std::make_unique<SendStream>(
        EndOf(transport, stage + 1, &after.sent_on, "activation", slots));
    gradients = std::make_unique<ReceiveStream>(
        EndOf(transport, stage + 1, &after.received_back, "gradient", slots));
  }
  int wrong = 0;
  for (int step = 0; step < steps; ++step) {
    if (activations) activations->Expect(shape.micro_batches);
    if (gradients) gradients->Expect(shape.micro_batches);
    for (const StageOperation& operation : StageOperations(shape, stage)) {
      const int m = operation.micro_batch;
      if (const auto message = ReceivedBefore(operation, stage, shape.stages)) {
        ReceiveStream& stream = operation.pass == PassKind::kForward ? *activations : *gradients;
        const std::span<const std::byte> bytes = stream.Next().value();
        for (const std::byte byte : bytes) {
          wrong += byte != Content(operation.pass, step, m, message->from);
        }
        stream.Release();
      }
      if (SentAfter(operation, stage, shape.stages)) {
        SendStream& stream = operation.pass == PassKind::kForward ? *on : *back;
        const std::span<std::byte> room = stream.Room().value();
        std::ranges::fill(room, Content(operation.pass, step, m, stage));
        stream.Send();
      }
    }
  }
  return wrong;
}

class ScheduleTest : public testing::TestWithParam<PipelineKind> {};

TEST_P(ScheduleTest, EveryMessageArrivesInItsPlace) {
  for (const int stages : {2, 3, 5}) {
    for (const int micro_batches : {1, 2, 7}) {
      for (const int slots : {1, 2}) {
        const PipelineShape shape{
            .kind = GetParam(), .stages = stages, .micro_batches = micro_batches};
        const auto world = MakeInProcessWorld(stages);
        std::vector<int> wrong(stages, -1);
        std::vector<std::thread> ranks;
        for (int rank = 0; rank < stages; ++rank) {
          ranks.emplace_back(
              [&, rank] { wrong[rank] = RunStage(shape, 3, slots, world[rank].get()); });
        }
        for (std::thread& rank : ranks) rank.join();
        EXPECT_THAT(wrong, testing::Each(0)) << stages << " stages, " << micro_batches;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ScheduleTest,
                         testing::Values(PipelineKind::kGpipe,
                                         PipelineKind::kOneForwardOneBackward));

// One that lives on while others use the channel.
TEST(MessageStreamTest, StreamsTakeTurns) {
  const auto world = MakeInProcessWorld(2);
  uint64_t sent = 0, received = 0;
  std::vector<int> order;
  std::thread other([&] {
    SendStream first(EndOf(world[0].get(), 1, &sent, "activation", 2));
    SendStream second(EndOf(world[0].get(), 1, &sent, "activation", 2));
    for (int i = 0; i < 12; ++i) {
      SendStream& stream = i / 3 % 2 == 0 ? first : second;
      stream.Room().value()[0] = static_cast<std::byte>(i);
      stream.Send();
    }
  });
  ReceiveStream first(EndOf(world[1].get(), 0, &received, "activation", 2));
  ReceiveStream second(EndOf(world[1].get(), 0, &received, "activation", 2));
  for (int turn = 0; turn < 4; ++turn) {
    ReceiveStream& stream = turn % 2 == 0 ? first : second;
    stream.Expect(3);
    for (int i = 0; i < 3; ++i) {
      order.push_back(static_cast<int>(stream.Next().value()[0]));
      stream.Release();
    }
  }
  other.join();
  EXPECT_THAT(order, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

TEST(MessageStreamTest, ALostNeighbourIsNamedWithTheMessage) {
  const auto world = MakeInProcessWorld(2);
  uint64_t next = 4;
  ReceiveStream stream(EndOf(world[1].get(), 0, &next, "activation", 2));
  stream.Expect(5);
  std::thread other([&] { world[0]->Abort(Internal("it is broken")); });
  const auto received = stream.Next();
  other.join();
  ASSERT_FALSE(received.ok());
  EXPECT_THAT(received.status().message(), HasSubstr("it is broken"));
  EXPECT_THAT(received.status().message(), HasSubstr("(activation 4 from rank 0)"));
}

TEST(MessageStreamTest, ASilentNeighbourIsNotWaitedForForEver) {
  const auto world = MakeInProcessWorld(2);
  uint64_t next = 0;
  StreamEnd end = EndOf(world[1].get(), 0, &next, "gradient", 1);
  end.stall_timeout = std::chrono::milliseconds(20);
  int looks = 0;
  end.moved = [&] { return static_cast<uint64_t>(std::min(++looks, 3)); };  // twice
  {
    ReceiveStream stream(end);
    stream.Expect(1);
    const auto received = stream.Next();
    ASSERT_FALSE(received.ok());
    EXPECT_EQ(received.status().code(), StatusCode::kDeadlineExceeded);
    EXPECT_THAT(received.status().message(), HasSubstr("nothing moved for 20 ms (gradient 0 from"));
    world[1]->Abort(received.status());
  }
  EXPECT_GT(looks, 3);
}

}  // namespace
}  // namespace ringtail
