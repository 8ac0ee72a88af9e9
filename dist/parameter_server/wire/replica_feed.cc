#include "dist/parameter_server/wire/replica_feed.h"

#include <utility>

namespace ringtail {

void ReplicaFeed::Forward(const ServerRequest& request, std::vector<ServerReply> replies) {
  if (!there_) {
    if (transport_->EndCause().ok()) options_.send(std::move(replies));
    return;
  }
  const uint64_t number = next_;
  held_.push_back({.replies = std::move(replies)});
  ServerMessage message = request.message;
  message.worker = request.worker;
  Send(message, request.gradient);
  Receive(number);
}

void ReplicaFeed::End() {
  if (there_) Send({.kind = MessageKind::kLeave, .worker = -1}, nullptr);
}

void ReplicaFeed::Send(const ServerMessage& message, SharedBuffer gradient) {
  const auto outgoing = std::make_shared<OutgoingMessage>(
      OutgoingMessage{.header = EncodeMessage(message), .bytes = std::move(gradient)});
  const auto sent = [this, outgoing](const Status& status) {
    if (!status.ok()) Lose(status);
  };
  std::vector<CompletionTarget> done;
  for (size_t part = 0; part < PartsOf(*outgoing); ++part) done.push_back(options_.start(sent));
  SendParts(transport_, options_.replica.rank, options_.replica.forwards, next_++, *outgoing, done);
}

void ReplicaFeed::Receive(uint64_t number) {
  const auto header = std::make_shared<EncodedMessage>();
  const auto received = [this, number, header](const Status& status) {
    const auto message = status.ok() ? DecodeMessage(*header) : status;
    if (!message.ok()) return Lose(message.status());
    if (!there_) return;
    held_[number - first_held_].acknowledged = true;
    Release();
  };
  transport_->Receive(options_.replica.rank,
                      LabelOf(options_.replica.acknowledgements, number, MessagePart::kHeader),
                      std::span<std::byte>(*header), options_.start(received));
}

// In order, whichever acknowledgement completes first.
void ReplicaFeed::Release() {
  while (!held_.empty() && held_.front().acknowledged) {
    options_.send(std::move(held_.front().replies));
    held_.pop_front();
    ++first_held_;
  }
}

void ReplicaFeed::Lose(const Status& cause) {
  if (!std::exchange(there_, false)) return;
  // Not the replica's end, but that of this rank: the replica answers from now on.
  if (!transport_->EndCause().ok()) return;
  // Rank 0 stays when it has lost another (dist/liveness/loss_judge.h): it serves from its copy now.
  if (options_.replica.rank == 0) return transport_->Abort(cause);
  for (Held& held : held_) held.acknowledged = true;
  Release();
  options_.lost(cause);
}

}  // namespace ringtail
