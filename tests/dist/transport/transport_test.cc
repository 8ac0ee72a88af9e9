// What every transport must do (dist/transport/transport.h), for each of them.
#include "dist/transport/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/random.h"
#include "dist/collectives/element_type.h"
#include "tests/dist/test_world.h"

namespace ringtail {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;

MessageLabel Label(uint64_t collective, uint32_t step = 0, uint32_t segment = 0) {
  return {.tag = {.collective = collective, .step = step, .segment = segment}, .check = 77};
}

class TransportTest : public ::testing::TestWithParam<WorldKind> {};

INSTANTIATE_TEST_SUITE_P(Every, TransportTest, ::testing::ValuesIn(AllWorldKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(TransportTest, KnowsItsRankAndWorld) {
  const World world = GetParam().make(3);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(world[rank]->rank(), rank);
    EXPECT_EQ(world[rank]->world_size(), 3);
  }
}

TEST_P(TransportTest, BytesOfAnySizeArriveInBothDirections) {
  const World world = GetParam().make(2);
  CompletionQueue queue;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{63}, size_t{4096}, kMiB - 1, 5 * kMiB}) {
    for (const int from : {0, 1}) {
      const MessageLabel label = Label(bytes, from);
      const std::vector<std::byte> sent = PatternBytes(bytes, from);
      std::vector<std::byte> received(bytes);
      world[1 - from]->Receive(from, label, received, {&queue, 0});
      world[from]->Send(1 - from, label, sent, {&queue, 1});
      for (const Status& status : Await(&queue, 2)) EXPECT_TRUE(status.ok()) << status.ToString();
      EXPECT_EQ(received, sent);
    }
  }
}

// Small and early, on credit, and so large that it has to be asked for; in chunks of any kind.
TEST_P(TransportTest, MessagesMayBeAddedToWhatIsThere) {
  const World world = GetParam().make(2);
  CompletionQueue queue;
  for (const size_t count : {size_t{0}, size_t{1}, size_t{1001}, size_t{300'007}, 2 * kMiB + 1}) {
    for (const bool receive_first : {true, false}) {
      std::vector<float> sent(count), memory(count + 1), expected(count + 1);
      for (size_t i = 0; i <= count; ++i) {
        const auto number = static_cast<float>(i % 1000);
        if (i < count) sent[i] = number;
        memory[i] = 0.5F * number;
        expected[i] = i < count ? 1.5F * number : memory[i];
      }
      const MessageLabel label = Label(count, receive_first ? 1 : 0);
      const ReceiveBuffer buffer(std::as_writable_bytes(std::span(memory).first(count)),
                                 AddFunctionOf(ElementType::kFloat));
      if (receive_first) world[1]->Receive(0, label, buffer, {&queue, 0});
      world[0]->Send(1, label, std::as_bytes(std::span(sent)), {&queue, 1});
      if (!receive_first) world[1]->Receive(0, label, buffer, {&queue, 0});
      for (const Status& status : Await(&queue, 2)) EXPECT_TRUE(status.ok()) << status.ToString();
      EXPECT_EQ(memory, expected) << count;
    }
  }
}

TEST_P(TransportTest, MessagesMeetByTagInAnyOrder) {
  const World world = GetParam().make(2);
  CompletionQueue sent, received;
  constexpr uint32_t kSide = 8;  // steps and segments
  std::vector<uint32_t> values(kSide * kSide), got(kSide * kSide);
  std::iota(values.begin(), values.end(), 100);
  for (uint32_t i = 0; i < values.size(); ++i) {
    world[0]->Send(1, Label(1, i / kSide, i % kSide),
                   std::as_bytes(std::span(values)).subspan(4 * i, 4), {&sent, i});
  }
  for (uint32_t i = got.size(); i-- > 0;) {
    world[1]->Receive(0, Label(1, i / kSide, i % kSide),
                      std::as_writable_bytes(std::span(got)).subspan(4 * i, 4), {&received, i});
  }
  for (const Status& status : Await(&received, got.size())) EXPECT_TRUE(status.ok());
  for (const Status& status : Await(&sent, values.size())) EXPECT_TRUE(status.ok());
  EXPECT_EQ(got, values);
}

// 64 MiB that are not asked for: most of it stays where it is; what is asked for comes at once; and
// in the end all of it arrives.
TEST_P(TransportTest, EarlyDataIsBoundedAndBlocksNothingThatIsAskedFor) {
  const World world = GetParam().make(2);
  constexpr size_t kMessages = 64;
  CompletionQueue early, asked_for;
  const std::vector<std::byte> sent = PatternBytes(kMessages * kMiB, 5);
  for (size_t i = 0; i < kMessages; ++i) {
    world[0]->Send(1, Label(1, 0, i), std::span(sent).subspan(i * kMiB, kMiB), {&early, i});
  }

  const std::vector<std::byte> urgent = PatternBytes(3 * kMiB, 6);
  std::vector<std::byte> received_urgent(urgent.size());
  world[0]->Send(1, Label(2), urgent, {&asked_for, 0});
  world[1]->Receive(0, Label(2), received_urgent, {&asked_for, 1});
  for (const Status& status : Await(&asked_for, 2)) EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(received_urgent, urgent);

  // What the sender could send early it has sent by now, because it began with that.
  size_t completed = 0;
  Completion completion;
  while (early.Next(&completion, Deadline())) {
    EXPECT_TRUE(completion.status.ok());
    ++completed;
  }
  EXPECT_LE(completed, 16);

  CompletionQueue received_queue;
  std::vector<std::byte> received(sent.size());
  for (size_t i = kMessages; i-- > 0;) {
    world[1]->Receive(0, Label(1, 0, i), std::span(received).subspan(i * kMiB, kMiB),
                      {&received_queue, i});
  }
  for (const Status& status : Await(&received_queue, kMessages)) EXPECT_TRUE(status.ok());
  for (; completed < kMessages; ++completed) {
    ASSERT_TRUE(early.Next(&completion, TestDeadline()));
    EXPECT_TRUE(completion.status.ok());
  }
  EXPECT_EQ(received, sent);
}

// Early and late, small and large, from and to all ranks at once.
TEST_P(TransportTest, ManyMessagesInEveryDirectionArriveWhole) {
  constexpr int kWorld = 4;
  constexpr size_t kMessages = 60;  // for each pair and direction
  const World world = GetParam().make(kWorld);
  const auto bytes_of = [](int from, int to, size_t i) {
    const uint64_t draw = from * 1000003 + to * 10007 + i * 101;
    return i % 10 == 0 ? draw % (2 * kMiB) : draw % 5000;
  };
  OnEveryRank(kWorld, [&](int rank) {
    CompletionQueue queue;
    std::vector<std::vector<std::byte>> sent, received;
    std::vector<std::pair<int, size_t>> order;  // of the operations: peer, message
    for (int peer = 0; peer < kWorld; ++peer) {
      for (size_t i = 0; peer != rank && i < kMessages; ++i) order.emplace_back(peer, i);
    }
    Rng random(RngKey(9).With(static_cast<uint64_t>(rank)));
    for (size_t i = order.size(); i-- > 1;) std::swap(order[i], order[random.Below(i + 1)]);
    for (const auto& [peer, i] : order) {
      sent.push_back(PatternBytes(bytes_of(rank, peer, i), rank * 31 + peer * 7 + i));
      received.emplace_back(bytes_of(peer, rank, i));
    }
    for (size_t k = 0; k < order.size(); ++k) {
      const auto& [peer, i] = order[k];
      world[rank]->Send(peer, Label(i), sent[k], {&queue, 2 * k});
      world[rank]->Receive(peer, Label(i), received[k], {&queue, 2 * k + 1});
    }
    for (const Status& status : Await(&queue, 2 * order.size())) {
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
    for (size_t k = 0; k < order.size(); ++k) {
      const auto& [peer, i] = order[k];
      EXPECT_EQ(received[k], PatternBytes(bytes_of(peer, rank, i), peer * 31 + rank * 7 + i));
    }
  });
}

TEST_P(TransportTest, AMessageOfAnotherLengthIsAnErrorThatNamesBoth) {
  for (const bool receive_first : {true, false}) {
    const World world = GetParam().make(2);
    CompletionQueue received, sent;
    const std::vector<std::byte> message(100);
    std::vector<std::byte> memory(96);
    if (receive_first) world[1]->Receive(0, Label(3, 1, 4), memory, {&received, 0});
    world[0]->Send(1, Label(3, 1, 4), message, {&sent, 0});
    if (!receive_first) world[1]->Receive(0, Label(3, 1, 4), memory, {&received, 0});
    const Status status = Await(&received, 1)[0];
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(),
              "receiving 96 bytes from rank 0 (collective 3, step 1, segment 4): the message has "
              "100 bytes, but 96 were expected");
    Await(&sent, 1);  // sent or failed: both are right

    // It was the end of both.
    world[0]->Receive(1, Label(4), memory, {&received, 0});
    EXPECT_THAT(Await(&received, 1)[0].message(),
                AllOf(HasSubstr("receiving 96 bytes from rank 1 (collective 4, step 0, segment 0)"),
                      HasSubstr("rank 1 stopped"), HasSubstr("100 bytes, but 96")));
  }
}

TEST_P(TransportTest, AMessageOfAnotherCheckIsAnError) {
  const World world = GetParam().make(2);
  CompletionQueue received, sent;
  const std::vector<std::byte> message(8);
  std::vector<std::byte> memory(8);
  world[1]->Receive(0, {.tag = {.collective = 1}, .check = 0xabc}, memory, {&received, 0});
  world[0]->Send(1, {.tag = {.collective = 1}, .check = 0xdef}, message, {&sent, 0});
  const Status status = Await(&received, 1)[0];
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("from rank 0"), HasSubstr("0000000000000def sent"),
                                      HasSubstr("0000000000000abc expected")));
  Await(&sent, 1);
}

TEST_P(TransportTest, AbortEndsWhatWaitsAndWhatComesOnEveryRank) {
  constexpr int kWorld = 3;
  const World world = GetParam().make(kWorld);
  std::vector<CompletionQueue> queues(kWorld);
  std::vector<std::byte> memory(10);
  for (int rank = 0; rank < kWorld; ++rank) {
    world[rank]->Receive((rank + 1) % kWorld, Label(1), memory, {&queues[rank], 0});
  }
  world[2]->Abort(DataLoss("the disk is gone"));
  world[2]->Abort(Cancelled("too late to be the cause"));
  const std::string cause = "the disk is gone";
  EXPECT_EQ(Await(&queues[2], 1)[0].message(),
            "receiving 10 bytes from rank 0 (collective 1, step 0, segment 0): " + cause);
  EXPECT_EQ(
      Await(&queues[0], 1)[0].message(),
      "receiving 10 bytes from rank 1 (collective 1, step 0, segment 0): rank 2 stopped: " + cause);
  EXPECT_EQ(
      Await(&queues[1], 1)[0].message(),
      "receiving 10 bytes from rank 2 (collective 1, step 0, segment 0): rank 2 stopped: " + cause);
  for (int rank = 0; rank < kWorld; ++rank) {
    world[rank]->Send((rank + 1) % kWorld, Label(2), memory, {&queues[rank], 0});
    const Status status = Await(&queues[rank], 1)[0];
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("sending 10 bytes"), HasSubstr(cause)));
  }
}

// Every operation completes, whenever the abort comes, and then its memory is let go of: the
// vectors end with the loop, and sanitizers watch.
TEST_P(TransportTest, AbortAmidTrafficCompletesEveryOperation) {
  for (size_t before = 0; before < 24; before += 4) {
    const World world = GetParam().make(2);
    constexpr size_t kMessages = 24;
    OnEveryRank(2, [&](int rank) {
      CompletionQueue queue;
      std::vector<std::byte> sent(kMessages * kMiB / 2), received(kMessages * kMiB / 2);
      const auto part = [](auto& memory, size_t i) {
        return std::span(memory).subspan(i * kMiB / 2, kMiB / 2);
      };
      for (size_t i = 0; i < kMessages; ++i) {
        world[rank]->Send(1 - rank, Label(i), part(sent, i), {&queue, 2 * i});
        world[rank]->Receive(1 - rank, Label(i), part(received, i), {&queue, 2 * i + 1});
        if (rank == 0 && i == before) world[rank]->Abort(Cancelled("enough"));
      }
      Await(&queue, 2 * kMessages);
    });
  }
}

TEST_P(TransportTest, WhoWaitsForARankThatHasLeftIsTold) {
  World world = GetParam().make(2);
  CompletionQueue queue;
  std::vector<std::byte> memory(10);
  world[0]->Receive(1, Label(1), memory, {&queue, 0});
  world[1].reset();
  const Status pending = Await(&queue, 1)[0];
  EXPECT_EQ(pending.code(), StatusCode::kUnavailable);
  EXPECT_THAT(pending.message(), HasSubstr("rank 1 has left"));
  world[0]->Send(1, Label(2), memory, {&queue, 0});
  EXPECT_THAT(Await(&queue, 1)[0].message(), HasSubstr("rank 1 has left"));
}

TEST_P(TransportTest, ARankThatNobodyWaitsForMayLeave) {
  World world = GetParam().make(3);
  world[2].reset();
  CompletionQueue queue;
  const std::vector<std::byte> sent = PatternBytes(1000, 1);
  std::vector<std::byte> received(1000);
  world[0]->Send(1, Label(1), sent, {&queue, 0});
  world[1]->Receive(0, Label(1), received, {&queue, 1});
  for (const Status& status : Await(&queue, 2)) EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(received, sent);
}

}  // namespace
}  // namespace ringtail
