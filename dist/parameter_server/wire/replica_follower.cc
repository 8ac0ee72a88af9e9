#include "dist/parameter_server/wire/replica_follower.h"

#include <memory>
#include <span>

#include "dist/parameter_server/wire/message_parts.h"

namespace ringtail {

void ReplicaFollower::ReceiveHeader() {
  const auto received = [this](const Status& status) {
    if (!status.ok()) return OnFailure(status);
    if (follows_) OnHeader();
  };
  transport_->Receive(options_.server.rank,
                      LabelOf(options_.server.forwards, next_, MessagePart::kHeader),
                      std::span<std::byte>(header_), options_.start(received));
}

void ReplicaFollower::OnHeader() {
  const auto message = DecodeMessage(header_);
  Status status = message.status();
  if (status.ok()) status = Check(*message);
  if (!status.ok()) return GiveUp(status);
  if (message->kind == MessageKind::kLeave && message->worker < 0) {
    follows_ = false;
    return;
  }
  request_ = {.worker = message->worker, .message = *message};
  if (message->bytes == 0) return Apply();
  request_.gradient = pool_.Take(message->bytes);
  const auto received = [this](const Status& part) {
    if (!part.ok()) return OnFailure(part);
    if (follows_) Apply();
  };
  transport_->Receive(options_.server.rank,
                      LabelOf(options_.server.forwards, next_, MessagePart::kBytes),
                      AllBytes(request_.gradient), options_.start(received));
}

// What a server has had was checked there, but not by this process.
Status ReplicaFollower::Check(const ServerMessage& message) const {
  const bool of_a_worker = message.kind != MessageKind::kLost &&
                           (message.kind != MessageKind::kLeave || message.worker >= 0);
  if (of_a_worker) return service_->Check(message.worker, message);
  if (message.bytes == 0 && !message.statistics) return OkStatus();
  return DataLoss("a server forwards a request with more than it has");
}

void ReplicaFollower::Apply() {
  service_->Handle(request_);
  request_.gradient.reset();
  const auto acknowledgement =
      std::make_shared<EncodedMessage>(EncodeMessage({.kind = MessageKind::kHave}));
  const auto sent = [this, acknowledgement](const Status& status) {
    if (!status.ok()) OnFailure(status);
  };
  transport_->Send(options_.server.rank,
                   LabelOf(options_.server.acknowledgements, next_, MessagePart::kHeader),
                   std::span<const std::byte>(*acknowledgement), options_.start(sent));
  ++next_;
  ReceiveHeader();
}

void ReplicaFollower::GiveUp(const Status& cause) {
  if (!follows_) return;
  transport_->GiveUp(options_.server.rank, cause);
  OnFailure(cause);
}

void ReplicaFollower::OnFailure(const Status& cause) {
  if (std::exchange(follows_, false)) options_.on_dead(cause);
}

}  // namespace ringtail
