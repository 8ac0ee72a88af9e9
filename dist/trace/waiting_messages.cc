#include "dist/trace/waiting_messages.h"

#include <fmt/format.h>

#include "dist/channel.h"

namespace ringtail {
namespace {

MessageLabel Label(uint32_t number) {
  return {.tag = {.collective = kTraceChannel.FirstCollective(), .step = number}};
}

}  // namespace

WaitingMessages::WaitingMessages(Transport* transport, std::chrono::milliseconds time_limit)
    : transport_(transport),
      time_limit_(time_limit),
      sent_(transport->world_size()),
      received_(transport->world_size()) {}

Status WaitingMessages::Send(int peer, std::span<const std::byte> bytes) {
  transport_->Send(peer, Label(sent_[peer]++), bytes, {.queue = &queue_});
  return Wait();
}

Status WaitingMessages::Receive(int peer, std::span<std::byte> bytes) {
  transport_->Receive(peer, Label(received_[peer]++), bytes, {.queue = &queue_});
  return Wait();
}

Status WaitingMessages::Wait() {
  Completion completion;
  if (queue_.Next(&completion, std::chrono::steady_clock::now() + time_limit_)) {
    return completion.status;
  }
  transport_->Abort({StatusCode::kDeadlineExceeded,
                     fmt::format("it has not ended within {} ms", time_limit_.count())});
  queue_.Drain(1, [&completion](const Completion& drained) {
    completion = drained;
    return true;
  });
  return completion.status;
}

}  // namespace ringtail
