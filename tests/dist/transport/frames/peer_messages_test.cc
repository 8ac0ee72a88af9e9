// The protocol between two ranks, without a wire: what one has to be written is read by the other.
#include "dist/transport/frames/peer_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/random.h"
#include "core/storage/crc32c.h"
#include "dist/collectives/element_type.h"
#include "dist/transport/frames/control_payload.h"
#include "dist/transport/frames/payload_landing.h"
#include "tests/dist/test_world.h"

namespace ringtail {
namespace {

using ::testing::HasSubstr;

MessageLabel Label(uint64_t collective) { return {.tag = {.collective = collective}, .check = 7}; }

std::vector<std::byte> Encode(const std::vector<OutgoingFrame>& frames) {
  std::vector<std::byte> bytes;
  for (const OutgoingFrame& frame : frames) {
    const auto header = EncodeHeader(frame.header);
    bytes.insert(bytes.end(), header.begin(), header.end());
    const auto control = std::as_bytes(std::span(frame.control_payload));
    bytes.insert(bytes.end(), control.begin(), control.end());
    bytes.insert(bytes.end(), frame.payload.begin(), frame.payload.end());
  }
  return bytes;
}

// In pieces of `piece` bytes: a wire cuts where it likes.
Status Read(PeerMessages* reader, const std::vector<std::byte>& bytes, size_t piece = 1000) {
  std::vector<std::span<const std::byte>> pieces;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    pieces.push_back(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
  }
  ByteCursor cursor(pieces);
  return reader->OnFrames(&cursor);
}

class PeerMessagesTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kGeneration = 3;

  void Send(uint64_t collective, std::span<const std::byte> bytes) {
    ASSERT_TRUE(sender_
                    .Send(std::make_shared<SendOperation>(
                        1, Label(collective), bytes,
                        CompletionTarget{.queue = &sent_, .id = collective}, sender_ending_))
                    .ok());
  }
  Status Receive(uint64_t collective, std::span<std::byte> bytes) {
    return receiver_.Receive({.peer = 0,
                              .label = Label(collective),
                              .buffer = bytes,
                              .done = {.queue = &received_, .id = collective}});
  }
  // One write of up to `bytes`, read at the other end. False: there was nothing.
  bool Step(PeerMessages* from, PeerMessages* to, size_t bytes = 1 << 20) {
    const std::vector<OutgoingFrame> frames = from->TakeFrames(bytes);
    const Status status = Read(to, Encode(frames));
    EXPECT_TRUE(status.ok()) << status.ToString();
    return !frames.empty();
  }
  void Exchange() {
    for (bool more = true; more;) {
      more = Step(&sender_, &receiver_);
      more = Step(&receiver_, &sender_) || more;
    }
  }
  // How many have completed so far, all of them well.
  static size_t Completed(CompletionQueue* queue) {
    size_t n = 0;
    for (Completion completion; queue->Next(&completion, Deadline()); ++n) {
      EXPECT_TRUE(completion.status.ok()) << completion.status.ToString();
    }
    return n;
  }
  FrameHeader DataHeader(uint64_t collective, uint32_t bytes) const {
    return {.kind = FrameKind::kData,
            .generation = kGeneration,
            .payload_bytes = bytes,
            .label = Label(collective),
            .message_bytes = bytes};
  }

  std::shared_ptr<Ending> sender_ending_ = std::make_shared<Ending>();
  std::shared_ptr<Ending> receiver_ending_ = std::make_shared<Ending>();
  CompletionQueue sent_, received_;
  PeerMessages sender_{1, kGeneration, sender_ending_}, receiver_{0, kGeneration, receiver_ending_};
};

TEST_F(PeerMessagesTest, AMessageIsOneFrameAndNeedsNoAnswer) {
  const std::vector<std::byte> message = PatternBytes(1000, 1);
  std::vector<std::byte> memory(1000);
  ASSERT_TRUE(Receive(1, memory).ok());
  Send(1, message);
  EXPECT_EQ(sender_.TakeFrames(0).size(), 0);
  EXPECT_TRUE(Step(&sender_, &receiver_));
  EXPECT_EQ(Completed(&received_), 1);
  EXPECT_EQ(memory, message);
  EXPECT_EQ(Completed(&sent_), 1);
  EXPECT_FALSE(Step(&receiver_, &sender_));
  EXPECT_FALSE(Step(&sender_, &receiver_));
}

TEST_F(PeerMessagesTest, ASendKeepsItsMemoryUntilItsFramesAreLetGo) {
  const std::vector<std::byte> message(1000);
  Send(1, message);
  std::vector<OutgoingFrame> frames = sender_.TakeFrames(1 << 20);
  EXPECT_EQ(Completed(&sent_), 0);
  EXPECT_EQ(frames.at(0).payload.data(), message.data());
  frames.clear();
  EXPECT_EQ(Completed(&sent_), 1);
}

TEST_F(PeerMessagesTest, ChunksComeTogetherWheneverTheReceiveIsPosted) {
  const std::vector<std::byte> message = PatternBytes(10'000, 2);
  // Before the first chunk, between two, after the last.
  for (const int posted_after : {0, 2, 4}) {
    std::vector<std::byte> memory(message.size());
    Send(posted_after, message);
    for (int chunk = 0; chunk < 4; ++chunk) {
      if (chunk == posted_after) {
        ASSERT_TRUE(Receive(posted_after, memory).ok());
      }
      ASSERT_TRUE(Step(&sender_, &receiver_, 2600));
    }
    if (posted_after == 4) {
      EXPECT_EQ(Completed(&received_), 0);
      ASSERT_TRUE(Receive(posted_after, memory).ok());
    }
    EXPECT_EQ(Completed(&received_), 1);
    EXPECT_EQ(memory, message);
  }
}

TEST_F(PeerMessagesTest, WithoutCreditAMessageWaitsUntilItIsAskedFor) {
  constexpr size_t kMessages = 10;
  const std::vector<std::byte> bytes = PatternBytes(1 << 20, 3);
  for (size_t i = 0; i < kMessages; ++i) Send(i, bytes);
  Exchange();
  EXPECT_EQ(Completed(&sent_), 3);  // of 1 MiB and a little each, on 4 MiB of credit
  std::vector<std::byte> memory(bytes.size());
  for (size_t i = kMessages; i-- > 0;) {
    std::fill(memory.begin(), memory.end(), std::byte{0});
    ASSERT_TRUE(Receive(i, memory).ok());
    Exchange();
    EXPECT_EQ(Completed(&received_), 1);
    EXPECT_EQ(memory, bytes);
  }
  EXPECT_EQ(Completed(&sent_), kMessages - 3);
}

TEST_F(PeerMessagesTest, OverANetworkMoreIsLent) {
  sender_.LendForNetwork();
  receiver_.LendForNetwork();
  constexpr size_t kMessages = 20;
  const std::vector<std::byte> bytes = PatternBytes(1 << 20, 3);
  std::vector<std::byte> memory(bytes.size());
  size_t tag = 0;
  // Of 1 MiB and a little each, on 16 MiB of credit; it comes back in quarters.
  for (const size_t on_credit : {15, 12}) {
    const size_t first = tag;
    for (size_t i = 0; i < kMessages; ++i) Send(tag++, bytes);
    Exchange();
    EXPECT_EQ(Completed(&sent_), on_credit);
    for (size_t i = first; i < tag; ++i) {
      ASSERT_TRUE(Receive(i, memory).ok());
      Exchange();
      EXPECT_EQ(Completed(&received_), 1);
    }
    EXPECT_EQ(Completed(&sent_), kMessages - on_credit);
  }
}

TEST_F(PeerMessagesTest, WhatOnlyOneSideThinksToBeLentIsRefused) {
  sender_.LendForNetwork();
  const std::vector<std::byte> bytes(kCreditBytes - kMessageCost + 1);
  Send(0, bytes);
  const Status status = Read(&receiver_, Encode(sender_.TakeFrames(2 * kCreditBytes)));
  EXPECT_THAT(status.message(), HasSubstr("it sends more than it has credit for"));
}

TEST_F(PeerMessagesTest, MessagesLargerThanAllCreditComeWhenAskedFor) {
  const std::vector<std::byte> message = PatternBytes(2 * kCreditBytes + 1, 4);
  std::vector<std::byte> memory(message.size());
  for (const bool posted_first : {true, false}) {
    if (posted_first) {
      ASSERT_TRUE(Receive(1, memory).ok());
    }
    Send(1, message);
    Exchange();
    if (!posted_first) {
      ASSERT_TRUE(Receive(1, memory).ok());
    }
    Exchange();
    EXPECT_EQ(Completed(&received_), 1);
    EXPECT_EQ(memory, message);
  }
}

TEST_F(PeerMessagesTest, CreditComesBackHoweverSmallTheMessages) {
  std::vector<std::byte> memory;
  for (uint64_t i = 0; i < 3 * kCreditBytes / kMessageCost; ++i) {
    Send(i, {});
    ASSERT_TRUE(Receive(i, memory).ok());
    Step(&sender_, &receiver_);
    Step(&receiver_, &sender_);
    ASSERT_EQ(Completed(&received_), 1);
  }
}

TEST_F(PeerMessagesTest, AMismatchIsSeenBeforeTheMessageIsSent) {
  const std::vector<std::byte> message(2 * kCreditBytes);
  std::vector<std::byte> memory(10);
  Send(1, message);
  Exchange();
  const Status status = Receive(1, memory);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  Completion completion;
  ASSERT_TRUE(received_.Next(&completion, Deadline()));
  EXPECT_EQ(completion.status.ToString(), status.ToString());
  sender_ending_->Set(Cancelled("the test ends"));
}

TEST_F(PeerMessagesTest, AGoodbyeIsAnErrorForWhoStillWaits) {
  ASSERT_TRUE(Read(&receiver_, Encode({ControlFrame(FrameKind::kGoodbye, kGeneration)})).ok());
  std::vector<std::byte> memory(1);
  EXPECT_EQ(Receive(1, memory).code(), StatusCode::kUnavailable);
  EXPECT_EQ(receiver_.peer_state(), PeerMessages::PeerState::kLeft);

  ASSERT_TRUE(sender_.Receive({.peer = 1, .buffer = memory, .done = {.queue = &sent_}}).ok());
  const Status status = Read(&sender_, Encode({ControlFrame(FrameKind::kGoodbye, kGeneration)}));
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("rank 1 has left"));
}

TEST_F(PeerMessagesTest, AnAbortBringsItsCause) {
  const Status cause(StatusCode::kUnavailable, "rank 5 stopped: " + std::string(10'000, 'x'));
  const Status status =
      Read(&receiver_, Encode({ControlFrame(FrameKind::kAbort, kGeneration, AbortPayload(cause))}));
  EXPECT_EQ(status.code(), cause.code());
  EXPECT_TRUE(cause.message().starts_with(status.message()));
  EXPECT_GT(status.message().size(), 4000);
  EXPECT_EQ(receiver_.peer_state(), PeerMessages::PeerState::kStopped);
}

// The transport ends a moment after it has read an abort: what is started meanwhile gets its cause,
// and none of its own.
TEST_F(PeerMessagesTest, WhatIsStartedAfterAnAbortEndsWithItsCause) {
  const Status cause(StatusCode::kUnavailable, "rank 0 stopped: out of memory");
  const Status read =
      Read(&receiver_, Encode({ControlFrame(FrameKind::kAbort, kGeneration, AbortPayload(cause))}));
  std::vector<std::byte> memory(10);
  EXPECT_TRUE(Receive(1, memory).ok());
  EXPECT_TRUE(receiver_
                  .Send(std::make_shared<SendOperation>(
                      0, Label(2), memory, CompletionTarget{.queue = &received_, .id = 2},
                      receiver_ending_))
                  .ok());
  ASSERT_TRUE(receiver_ending_->Set(read));
  receiver_.End(ControlFrame(FrameKind::kAbort, kGeneration, AbortPayload(cause)));
  for (int i = 0; i < 2; ++i) {
    Completion completion;
    ASSERT_TRUE(received_.Next(&completion, TestDeadline()));
    EXPECT_TRUE(completion.status.message().ends_with("rank 0 stopped: out of memory"))
        << completion.status.ToString();
  }
}

// ---- peers that do not keep to it ---------------------------------------------------------------

TEST_F(PeerMessagesTest, WhatAPeerMayNotSayIsAnError) {
  const auto refused = [&](const std::vector<FrameHeader>& headers) {
    PeerMessages reader(0, kGeneration, std::make_shared<Ending>());
    std::vector<OutgoingFrame> frames;
    std::vector<std::vector<std::byte>> payloads;
    for (FrameHeader header : headers) {
      payloads.emplace_back(header.payload_bytes);
      header.payload_crc = Crc32c(payloads.back());
      header.number = frames.size();
      frames.push_back({.header = header, .payload = payloads.back()});
    }
    return Read(&reader, Encode(frames)).code();
  };
  EXPECT_EQ(refused({DataHeader(1, 10), DataHeader(2, 10)}), StatusCode::kOk);

  FrameHeader other = DataHeader(1, 10);
  other.generation = kGeneration - 1;
  EXPECT_EQ(refused({other}), StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused({DataHeader(1, 10), DataHeader(1, 10)}), StatusCode::kDataLoss);  // twice
  other = DataHeader(1, 10);
  other.granted = true;
  EXPECT_EQ(refused({other}), StatusCode::kDataLoss);
  other = DataHeader(1, kChunkAlignment);
  other.message_bytes = 2 * kChunkAlignment;
  EXPECT_EQ(refused({other}), StatusCode::kOk);
  EXPECT_EQ(refused({other, DataHeader(2, 10)}), StatusCode::kDataLoss);  // in between
  other.offset = kChunkAlignment;
  EXPECT_EQ(refused({other}), StatusCode::kDataLoss);  // no beginning
  other = DataHeader(1, kChunkAlignment - 4);
  other.message_bytes = 2 * kChunkAlignment;
  EXPECT_EQ(refused({other}), StatusCode::kDataLoss);  // cut where an element may be
  other = DataHeader(1, 0);
  other.message_bytes = uint64_t{1} << 60;
  EXPECT_EQ(refused({other}), StatusCode::kDataLoss);  // more than credit, and claimed memory
  std::vector<FrameHeader> many(5, DataHeader(1, 1 << 20));
  for (size_t i = 0; i < many.size(); ++i) many[i].label.tag.collective = i;
  EXPECT_EQ(refused(many), StatusCode::kDataLoss);
  EXPECT_EQ(refused({{.kind = FrameKind::kGrant, .generation = kGeneration}}),
            StatusCode::kDataLoss);
  EXPECT_EQ(refused({{.kind = FrameKind::kCredit, .generation = kGeneration, .offset = 1}}),
            StatusCode::kDataLoss);
  EXPECT_EQ(refused({{.kind = FrameKind::kHello, .generation = kGeneration}}),
            StatusCode::kDataLoss);
  const FrameHeader request{.kind = FrameKind::kRequest, .generation = kGeneration};
  EXPECT_EQ(refused({request, request}), StatusCode::kDataLoss);
}

TEST_F(PeerMessagesTest, TruncatedAndFlippedFramesAreErrors) {
  const std::vector<std::byte> message = PatternBytes(500, 5);
  Send(1, message);
  const std::vector<std::byte> bytes = Encode(sender_.TakeFrames(1 << 20));
  for (size_t length = 1; length < bytes.size(); ++length) {
    PeerMessages reader(0, kGeneration, std::make_shared<Ending>());
    EXPECT_FALSE(Read(&reader, {bytes.begin(), bytes.begin() + length}).ok()) << length;
  }
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::vector<std::byte> flipped = bytes;
    flipped[bit / 8] ^= std::byte{1} << (bit % 8);
    PeerMessages reader(0, kGeneration, std::make_shared<Ending>());
    EXPECT_EQ(Read(&reader, flipped).code(), StatusCode::kDataLoss) << bit;
  }
}

// Frames as they lie in gRPC messages that HTTP/2 has lost, doubled or exchanged: each is intact.
TEST_F(PeerMessagesTest, FramesThatAreLostDoubledOrOvertakenAreErrors) {
  const std::vector<std::byte> message = PatternBytes(50, 6);
  std::vector<std::vector<std::byte>> frames;
  for (uint64_t tag = 0; tag < 3; ++tag) {
    Send(tag, message);
    frames.push_back(Encode(sender_.TakeFrames(1 << 20)));
  }
  const auto read = [&](const std::vector<int>& order) {
    PeerMessages reader(0, kGeneration, std::make_shared<Ending>());
    Status status;
    for (const int frame : order) {
      if (status.ok()) status = Read(&reader, frames[frame]);
    }
    return status;
  };
  EXPECT_TRUE(read({0, 1, 2}).ok());
  EXPECT_EQ(read({1}).code(), StatusCode::kDataLoss);
  EXPECT_EQ(read({0, 0}).code(), StatusCode::kDataLoss);
  EXPECT_EQ(read({1, 0}).code(), StatusCode::kDataLoss);
  EXPECT_THAT(read({0, 2}).message(), HasSubstr("rank 0 does not keep to the protocol: frame 2 "
                                                "comes where frame 1 is due"));
}

TEST_F(PeerMessagesTest, NumbersOfFramesBeginAgain) {
  const std::vector<std::byte> message(1);
  std::vector<std::byte> memory(1);
  constexpr uint64_t kMessages = 70'000;  // a number has 16 bits
  for (uint64_t tag = 0; tag < kMessages; ++tag) {
    ASSERT_TRUE(Receive(tag, memory).ok());
    Send(tag, message);
    Exchange();
  }
  EXPECT_EQ(Completed(&received_), kMessages);
}

// Random frames with right checksums, against a rank with random operations: whatever they say,
// every operation completes once, and sanitizers see to the rest.
TEST_F(PeerMessagesTest, NoSequenceOfFramesDoesHarm) {
  Rng random(RngKey(17));
  int errors = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const auto ending = std::make_shared<Ending>();
    PeerMessages messages(0, kGeneration, ending);
    CompletionQueue queue;
    std::vector<std::vector<std::byte>> memories;
    const std::vector<std::byte> large(kCreditBytes);
    size_t operations = 0;
    for (uint64_t tag = 0; tag < 4; ++tag, ++operations) {
      memories.emplace_back(random.Below(3) * 2 * kChunkAlignment);
      const CompletionTarget done{.queue = &queue, .id = operations};
      if (random.Below(2) == 0) {
        const Combine combine = random.Below(2) == 0 ? AddFunctionOf(ElementType::kFloat) : nullptr;
        const ReceiveBuffer buffer(memories[tag], combine);
        ASSERT_TRUE(messages.Receive({.label = Label(tag), .buffer = buffer, .done = done}).ok());
      } else {
        ASSERT_TRUE(
            messages.Send(std::make_shared<SendOperation>(0, Label(tag), large, done, ending))
                .ok());
      }
    }
    Status status;
    const uint64_t frames = random.Below(8);
    for (uint64_t i = 0; i < frames && status.ok(); ++i) {
      FrameHeader header = DataHeader(random.Below(4), 0);
      header.number = i;
      header.kind = static_cast<FrameKind>(2 + random.Below(5));
      header.message_bytes = random.Below(3) * 2 * kChunkAlignment;
      if (header.kind == FrameKind::kData) {
        header.granted = random.Below(3) == 0;
        header.offset = random.Below(3) == 0 ? header.message_bytes / 2 : 0;
        header.payload_bytes =
            random.Below(2) == 0 ? header.message_bytes - header.offset : header.message_bytes / 2;
        header.payload_bytes =
            std::min<uint64_t>(header.payload_bytes, header.message_bytes - header.offset);
      } else if (header.kind == FrameKind::kCredit) {
        header.offset = random.Below(2) == 0 ? 0 : random.Below(1 << 30);
      }
      const std::vector<std::byte> payload(header.payload_bytes);
      header.payload_crc = Crc32c(payload);
      status = Read(&messages, Encode({{.header = header, .payload = payload}}));
      if (random.Below(4) == 0) messages.TakeFrames(1 << 20);
    }
    errors += status.ok() ? 0 : 1;
    ending->Set(Cancelled("the test ends"));
    messages.End(ControlFrame(FrameKind::kGoodbye, kGeneration));
    Await(&queue, operations);
    Completion again;
    ASSERT_FALSE(queue.Next(&again, Deadline())) << "an operation completed twice";
  }
  EXPECT_GT(errors, 500);
  EXPECT_LT(errors, 2000);
}

}  // namespace
}  // namespace ringtail
