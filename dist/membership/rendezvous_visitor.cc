#include "dist/membership/rendezvous_visitor.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "dist/transport/door/grpc_door.h"
#include "dist/transport/frames/keyed_hash.h"
#include "dist/transport/grpc/grpc_stream.h"

namespace ringtail {

RendezvousVisitor::RendezvousVisitor(Host* host, grpc::ServerCompletionQueue* queue)
    : host_(host), queue_(queue), stream_(&context_) {}

template <typename Function>
void* RendezvousVisitor::Tag(Function function) {
  return NewGrpcTag([self = shared_from_this(), function](bool ok) { function(self.get(), ok); });
}

void RendezvousVisitor::Accept(RendezvousService::AsyncService* service) {
  service->RequestJoin(&context_, &stream_, queue_, queue_,
                       Tag([](RendezvousVisitor* self, bool ok) {
                         if (ok) self->OnDialled();
                       }));
}

void RendezvousVisitor::OnDialled() {
  state_ = State::kHello;
  limit_.Set(queue_, std::chrono::system_clock::now() + kStrangerLimit,
             Tag([](RendezvousVisitor* self, bool expired) {
               if (expired && !self->is_rank()) {
                 self->TurnAway({StatusCode::kDeadlineExceeded,
                                 fmt::format("it has not said which rank it is within {} s",
                                             kStrangerLimit.count())});
               }
             }));
  Read();
  host_->OnVisitor();
}

void RendezvousVisitor::Read() {
  stream_.Read(&incoming_, Tag([](RendezvousVisitor* self, bool ok) { self->OnRead(ok); }));
}

void RendezvousVisitor::OnRead(bool ok) {
  if (!ok) {
    limit_.Cancel();
    pause_.Cancel();
    if (!last_) EndWith(grpc::Status::OK);  // else it may only have stopped talking
    return;
  }
  if (!end_.has_value() && !last_) {
    const StatusOr<RendezvousMessage> message = conversation_.Open(incoming_);
    Status status = message.status();
    if (status.ok() && is_rank()) {
      host_->OnMessage(this, *message);
    } else if (status.ok()) {
      status = state_ == State::kHello ? OnHello(*message) : OnFactsPart(*message);
    }
    if (!status.ok()) TurnAway(status);
  }
  Read();
}

Status RendezvousVisitor::OnHello(const RendezvousMessage& message) {
  if (!message.has_hello() || message.hello().nonce().size() != kNonceBytes) {
    return InvalidArgument("it does not begin with a hello");
  }
  RendezvousMessage challenge;
  challenge.mutable_challenge()->set_nonce(RandomBytes(kNonceBytes));
  challenge.mutable_challenge()->set_generation(host_->generation());
  const SealedMessage sent = Conversation::Unsealed(challenge);
  conversation_.Begin(Session::Side::kRendezvous, host_->token(), incoming_, sent);
  state_ = State::kFacts;
  Put(sent);
  return {};
}

Status RendezvousVisitor::OnFactsPart(const RendezvousMessage& message) {
  if (!message.has_facts()) return InvalidArgument("it does not say its facts");
  RT_ASSIGN_OR_RETURN(const bool complete, pieces_.Add(message.facts()));
  if (!complete) return {};
  RT_ASSIGN_OR_RETURN(facts_, DecodeFacts(pieces_.bytes()));
  limit_.Cancel();
  state_ = State::kRank;
  host_->OnFacts(shared_from_this());
  return {};
}

void RendezvousVisitor::AskAgainIn(std::chrono::milliseconds pause) {
  asked_again_ = true;
  pause_.Set(queue_, std::chrono::system_clock::now() + pause,
             Tag([](RendezvousVisitor* self, bool expired) {
               if (expired && !self->gone()) self->host_->OnFacts(self->shared_from_this());
             }));
}

// A stranger is told why in gRPC's own way, because there may be no key for a seal.
void RendezvousVisitor::TurnAway(const Status& why) {
  if (end_.has_value()) return;
  host_->OnTurnedAway(this, why);
  EndWith({static_cast<grpc::StatusCode>(why.code()), why.message().substr(0, kMaxRefusalBytes)});
}

void RendezvousVisitor::Say(const RendezvousMessage& message) {
  if (!last_) Put(conversation_.Seal(message));
}

void RendezvousVisitor::SayLast(const RendezvousMessage& message) {
  if (last_) return;
  last_ = true;
  Put(conversation_.Seal(message));
}

void RendezvousVisitor::Put(SealedMessage message) {
  outgoing_.push_back(std::move(message));
  if (!writing_ && !end_.has_value()) WriteNext();
}

void RendezvousVisitor::WriteNext() {
  if (outgoing_.empty()) {
    if (last_) EndWith(grpc::Status::OK);
    return;
  }
  const SealedMessage next = std::move(outgoing_.front());
  outgoing_.pop_front();
  writing_ = true;
  stream_.Write(next, Tag([](RendezvousVisitor* self, bool ok) {
                  self->writing_ = false;
                  if (!ok) self->EndWith(grpc::Status::OK);  // it is broken
                  self->end_.has_value() ? self->Finish() : self->WriteNext();
                }));
}

// The stream ends when what is being written is, and nothing more is said.
void RendezvousVisitor::EndWith(const grpc::Status& status) {
  if (!end_.has_value()) end_ = status;
  if (!writing_) Finish();
}

void RendezvousVisitor::Finish() {
  if (std::exchange(finished_, true)) return;
  stream_.Finish(*end_, Tag([](RendezvousVisitor* self, bool) { self->host_->OnEnd(self); }));
}

}  // namespace ringtail
