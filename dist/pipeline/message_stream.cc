#include "dist/pipeline/message_stream.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/random.h"
#include "core/round.h"

namespace ringtail {
namespace {

constexpr size_t kSlotAlignment = 64;
constexpr std::chrono::seconds kLastMessages{10};  // for a peer that still computes

}  // namespace

MessageStream::MessageStream(StreamEnd end)
    : end_(std::move(end)),
      slot_bytes_(RoundUp(end_.bytes, kSlotAlignment)),
      memory_(slot_bytes_ * end_.slots),
      numbers_(end_.slots) {
  RT_CHECK(end_.slots >= 1, "a stream needs a slot");
}

MessageStream::~MessageStream() {
  Completion ignored;
  while (under_way_ > 0 && end_.transport->EndCause().ok()) {
    if (queue_.Next(&ignored, std::chrono::steady_clock::now() + kLastMessages)) {
      --under_way_;
    } else {
      end_.transport->Abort(Internal("a message between stages was left under way"));
    }
  }
  queue_.Drain(under_way_);
}

std::span<std::byte> MessageStream::Slot(uint64_t message) {
  return {memory_.data() + message % end_.slots * slot_bytes_, end_.bytes};
}

MessageLabel MessageStream::LabelOf(uint64_t number) const {
  return {.tag = {.collective = end_.channel.FirstCollective() + number},
          .check = RngKey(end_.bytes).With(end_.what).bits()};
}

void MessageStream::StartNext(Direction direction) {
  const uint64_t number = (*end_.next)++;
  const std::span<std::byte> slot = Slot(started_);
  numbers_[started_++ % end_.slots] = number;
  const CompletionTarget done{.queue = &queue_, .id = number};
  ++under_way_;
  if (direction == Direction::kSend) {
    end_.transport->Send(end_.peer, LabelOf(number), slot, done);
  } else {
    end_.transport->Receive(end_.peer, LabelOf(number), slot, done);
  }
}

Status MessageStream::WaitFor(uint64_t message, Direction direction) {
  const uint64_t number = numbers_[message % end_.slots];
  const auto moved = [this] { return end_.moved ? end_.moved() : 0; };
  for (uint64_t before = moved(); std::erase(ended_, number) == 0;) {
    Completion completion;
    if (queue_.Next(&completion, std::chrono::steady_clock::now() + end_.stall_timeout)) {
      --under_way_;
      if (!completion.status.ok()) return At(completion.id, direction, completion.status);
      ended_.push_back(completion.id);
      continue;
    }
    const uint64_t now = moved();
    if (now == std::exchange(before, now)) {
      return At(number, direction,
                {StatusCode::kDeadlineExceeded,
                 fmt::format("nothing moved for {} ms", end_.stall_timeout.count())});
    }
  }
  return OkStatus();
}

Status MessageStream::At(uint64_t number, Direction direction, const Status& cause) const {
  const bool send = direction == Direction::kSend;
  return {cause.code(), fmt::format("{} ({} {} {} rank {})", cause.message(), end_.what, number,
                                    send ? "to" : "from", end_.peer)};
}

StatusOr<std::span<std::byte>> SendStream::Room() {
  const auto slots = static_cast<uint64_t>(end_.slots);
  for (; started() - waited_ >= slots; ++waited_) {
    RT_RETURN_IF_ERROR(WaitFor(waited_, Direction::kSend));
  }
  return Slot(started());
}

Status SendStream::Flush() {
  for (; waited_ < started(); ++waited_) {
    RT_RETURN_IF_ERROR(WaitFor(waited_, Direction::kSend));
  }
  return OkStatus();
}

void SendStream::Send() { StartNext(Direction::kSend); }

void ReceiveStream::Expect(int64_t messages) {
  expected_ += messages;
  Post();
}

void ReceiveStream::Post() {
  while (expected_ > 0 && started() - taken_ < static_cast<uint64_t>(end_.slots)) {
    --expected_;
    StartNext(Direction::kReceive);
  }
}

StatusOr<std::span<const std::byte>> ReceiveStream::Next() {
  RT_CHECK(taken_ < started(), "a message must be expected before it is taken");
  RT_RETURN_IF_ERROR(WaitFor(taken_, Direction::kReceive));
  return std::span<const std::byte>(Slot(taken_));
}

void ReceiveStream::Release() {
  ++taken_;
  Post();
}

}  // namespace ringtail
