#include "dist/transport/grpc/grpc_transport.h"

#include <fmt/format.h>

#include <utility>

#include "core/check.h"
#include "core/logging.h"
#include "core/machine/thread_budget.h"
#include "core/stop_signal.h"
#include "dist/transport/frames/control_payload.h"

namespace ringtail {
namespace {

// The time for an abort to get through before connections are cut. A peer that has stopped reading
// may hold our memory for as long. A goodbye has as long as a connection may be silent: it follows
// all that the peers still wait for, and on a network that loses packets that may take a while.
constexpr std::chrono::seconds kClosingLimit{2};

// The time for a stream that was accepted to say which rank it is.
constexpr std::chrono::seconds kGreetingLimit = kStrangerLimit;

// Both ends get the same answer. Traffic within a machine is quick.
bool NeedsUrgentStream(const PeerTable& peers, int peer) { return !peers.OnOneHost(peer); }

std::vector<int> StreamsByPeer(const PeerTable& peers) {
  std::vector<int> streams;
  streams.reserve(peers.world_size());
  for (int peer = 0; peer < peers.world_size(); ++peer) {
    streams.push_back(peer == peers.rank ? 0 : NeedsUrgentStream(peers, peer) ? 2 : 1);
  }
  return streams;
}

}  // namespace

GrpcTransport::GrpcTransport(std::unique_ptr<GrpcServer> server, const PeerTable& peers,
                             TransportObserver* observer)
    : peers_(peers),
      observer_(observer),
      server_(std::move(server)),
      peer_endings_(peers.addresses.size()),
      messages_(peers.addresses.size()),
      urgent_(peers.addresses.size()),
      streams_(StreamsByPeer(peers)) {
  for (int peer = 0; peer < world_size(); ++peer) {
    if (peer == rank()) continue;
    peer_endings_[peer] = std::make_shared<Ending>(ending_);
    messages_[peer] = std::make_unique<PeerMessages>(peer, peers_.generation, peer_endings_[peer]);
    if (peers_.OnOneHost(peer)) {
      messages_[peer]->SkipChecksums();
    } else {
      messages_[peer]->LendForNetwork();
    }
    if (NeedsUrgentStream(peers_, peer)) {
      urgent_[peer] = std::make_unique<PeerMessages>(peer, peers_.generation, peer_endings_[peer]);
    }
  }
}

GrpcTransport::~GrpcTransport() {
  EndWith({StatusCode::kUnavailable, fmt::format("rank {} has left the world", rank())},
          ControlFrame(FrameKind::kGoodbye, peers_.generation));
  std::thread closer;
  {
    MutexLock lock(&mutex_);
    // Another thread may have ended it, and be about to start the closer.
    while (!closer_.joinable()) closer_started_.Wait(&mutex_);
    closer = std::move(closer_);
  }
  closer.join();
  server_->queue->Shutdown();
  for (std::thread& thread : io_threads_) thread.join();
  server_->server.reset();
}

// ---- connecting ---------------------------------------------------------------------------------

Status GrpcTransport::Connect() {
  for (int i = 0; i < server_->options.io_threads; ++i) {
    io_threads_.emplace_back([this] {
      SetThreadName("rt-grpc");
      RunGrpcCallbacks(server_->queue.get());
    });
  }
  AcceptNext();
  server_->door->Open();
  for (int peer = 0; peer < rank(); ++peer) Dial(peer, /*urgent=*/false);

  const auto timeout = server_->options.connect_timeout;
  const Deadline deadline = std::chrono::steady_clock::now() + timeout;
  if (streams_.AwaitAll(deadline)) return {};
  const std::string missing = DescribeMissing();
  const Status stopped = CheckNotStopped();
  Abort(!stopped.ok()
            ? stopped.Annotate(fmt::format("rank {} waited for {}", rank(), missing))
            : Status(StatusCode::kDeadlineExceeded, fmt::format("rank {} has waited {} ms for {}",
                                                                rank(), timeout.count(), missing)));
  return ending_->cause();
}

std::string GrpcTransport::DescribeMissing() const {
  std::string missing;
  for (const int peer : streams_.Missing()) {
    missing +=
        fmt::format("{}rank {} ({})", missing.empty() ? "" : ", ", peer, peers_.addresses[peer]);
  }
  return missing;
}

void GrpcTransport::Dial(int peer, bool urgent) {
  TransportOptions options = server_->options;
  if (!urgent && urgent_[peer] != nullptr) options.keepalive_time = kNoKeepalive;
  const auto stream = std::make_shared<DialledStream>(DialGrpc(peers_.addresses[peer], options),
                                                      server_->queue.get(), this);
  stream->peer = peer;
  stream->urgent = urgent;
  stream->WriteFirst(greeter_.HelloTo(peer, urgent));
  streams_.Remember(stream);
  stream->Start();
}

// Streams that have not said hello may each hold a gRPC message of our memory. The door bounds
// their number: each has a connection of its own, and only so many are inside (grpc_door.cc).
void GrpcTransport::AcceptNext() {
  const auto stream = std::make_shared<AcceptedStream>(server_->queue.get(), this);
  streams_.Remember(stream);
  AcceptedStream* const accepted = stream.get();  // the call under way holds it
  stream->Accept(&server_->service, [this, accepted](bool ok) {
    if (!ok) return;
    accepted->LimitGreeting(std::chrono::system_clock::now() + kGreetingLimit);
    AcceptNext();
  });
}

Status GrpcTransport::CheckNewcomer(const Hello& hello) {
  RT_RETURN_IF_ERROR(greeter_.CheckNewcomer(hello));
  if (hello.urgent && urgent_[hello.rank] == nullptr) {
    return FailedPrecondition(
        fmt::format("rank {} needs one stream to rank {}", hello.rank, rank()));
  }
  switch (streams_.Look(hello.rank, hello.urgent)) {
    case StreamTable::Vacancy::kFree:
      return OkStatus();
    case StreamTable::Vacancy::kTaken:
      return AlreadyExists(fmt::format("there is a rank {} already", hello.rank));
    case StreamTable::Vacancy::kClosing:
      return FailedPrecondition(fmt::format("rank {} is leaving", rank()));
  }
  RT_CHECK(false, "every vacancy has an answer");
}

// The first message of a stream. False: the stream is turned away.
bool GrpcTransport::Greet(GrpcStream* stream, ByteCursor* bytes) {
  const StatusOr<Hello> hello = greeter_.Read(bytes);
  if (stream->peer >= 0) {  // the answer of a rank that we have dialled
    const Status status = greeter_.CheckAnswer(hello, stream->peer, stream->urgent);
    if (status.ok()) {
      Admit(stream, stream->peer);
    } else {
      Abort(status);
    }
    return status.ok();
  }
  auto* const accepted = static_cast<AcceptedStream*>(stream);
  const Status status = hello.ok() ? CheckNewcomer(*hello) : hello.status();
  if (!status.ok()) {
    if (const auto note = turned_away_.Allow()) {
      LogWarning(fmt::format("rank {} turned away a connection from {}: {}{}", rank(),
                             accepted->PeerAddress(), status.message(), *note));
    }
    accepted->Refuse(status.message());
    return false;
  }
  stream->WriteFirst(greeter_.HelloTo(hello->rank, hello->urgent));
  accepted->EndLimit();
  server_->door->Proved(accepted->PeerAddress());
  stream->urgent = hello->urgent;
  Admit(stream, hello->rank);
  return true;
}

void GrpcTransport::Admit(GrpcStream* stream, int peer) {
  stream->peer = peer;
  stream->greeted = true;
  stream->Attach(MessagesOf(*stream));
  if (!streams_.Admit(stream->shared_from_this())) {
    stream->CloseAfterWriting();  // too late to be told with the others
  } else if (peer < rank() && !stream->urgent && urgent_[peer] != nullptr) {
    Dial(peer, /*urgent=*/true);
  }
}

// ---- operations ---------------------------------------------------------------------------------

void GrpcTransport::Pump(int peer, bool urgent) {
  if (const auto stream = streams_.Find(peer, urgent)) stream->Pump();
}

void GrpcTransport::StartSend(int peer, const MessageLabel& label, std::span<const std::byte> bytes,
                              CompletionTarget done) {
  const Status status =
      MessagesFor(peer, label.tag)
          ->Send(std::make_shared<SendOperation>(peer, label, bytes, done, peer_endings_[peer]));
  if (!status.ok()) LosePeer(peer, status);
  Pump(peer, UsesUrgentStream(peer, label.tag));
}

void GrpcTransport::StartReceive(int peer, const MessageLabel& label, ReceiveBuffer buffer,
                                 CompletionTarget done) {
  const Status status =
      MessagesFor(peer, label.tag)
          ->Receive({.peer = peer, .label = label, .buffer = buffer, .done = done});
  if (!status.ok()) LosePeer(peer, status);
  Pump(peer, UsesUrgentStream(peer, label.tag));
}

// ---- what streams bring -------------------------------------------------------------------------

void GrpcTransport::OnMessage(GrpcStream* stream, ByteCursor* bytes) {
  if (!stream->greeted && !Greet(stream, bytes)) return;
  PeerMessages& messages = *MessagesOf(*stream);
  const Status status = messages.OnFrames(bytes);
  if (!status.ok()) OnFramesFailed(stream->peer, status);
  if (messages.peer_state() == PeerMessages::PeerState::kLeft) {
    if (observer_ != nullptr) observer_->OnPeerLeft(stream->peer);
    stream->CloseAfterWriting();
  }
  stream->Pump();
}

bool GrpcTransport::HasSaid(int peer, PeerMessages::PeerState state) const {
  return messages_[peer]->peer_state() == state ||
         (urgent_[peer] != nullptr && urgent_[peer]->peer_state() == state);
}

void GrpcTransport::OnFramesFailed(int peer, const Status& status) {
  if (HasSaid(peer, PeerMessages::PeerState::kGaveThisRankUp)) return Abort(status);
  if (tolerant_) return LosePeer(peer, status);
  // What a peer has told us is passed on unchanged: the rank that it comes from is in it.
  const bool told = HasSaid(peer, PeerMessages::PeerState::kStopped);
  End(status, told ? status : AbortSeenByPeer(rank(), status));
}

void GrpcTransport::OnEnd(GrpcStream* stream, const std::string& reason) {
  if (!stream->greeted) {
    if (stream->peer < 0) return;  // a stranger
    Abort({StatusCode::kFailedPrecondition,
           fmt::format("rank {} ({}) did not take rank {} in: {}", stream->peer,
                       peers_.addresses[stream->peer], rank(), reason)});
    return;
  }
  const bool told = HasSaid(stream->peer, PeerMessages::PeerState::kStopped) ||
                    HasSaid(stream->peer, PeerMessages::PeerState::kGaveThisRankUp);
  if (!told && MessagesOf(*stream)->peer_state() == PeerMessages::PeerState::kHere) {
    const Status lost(
        StatusCode::kUnavailable,
        fmt::format("lost rank {} ({}): {}", stream->peer, peers_.addresses[stream->peer],
                    reason.empty() ? "the connection broke" : reason));
    if (tolerant_) {
      Lose(stream->peer, lost, /*reachable=*/false);
    } else {
      Abort(lost);
    }
  }
  streams_.OnEnd();
}

// ---- losing a peer ------------------------------------------------------------------------------

Status GrpcTransport::TolerateLosses(std::shared_ptr<PeerLossObserver> observer) {
  RT_CHECK(!tolerant_, "a transport becomes tolerant once");
  loss_observer_ = std::move(observer);
  tolerant_ = true;
  return {};
}

void GrpcTransport::LosePeer(int peer, const Status& cause) {
  if (tolerant_) return Lose(peer, cause, /*reachable=*/true);
  Abort(cause);
}

// A peer that can be reached is told, and has a while to read it. If only the connection to it is
// broken, it is not: it says of us what we say of it, and both would end.
void GrpcTransport::Lose(int peer, const Status& cause, bool reachable) {
  if (!peer_endings_[peer]->Set(cause)) return;
  const OutgoingFrame last =
      ControlFrame(FrameKind::kGiveUp, peers_.generation, AbortPayload(GivenUpBy(rank(), cause)));
  for (const auto* const lane : {&urgent_, &messages_}) {
    if ((*lane)[peer] != nullptr) (*lane)[peer]->End(last);
  }
  for (const bool urgent : {true, false}) {
    const auto stream = streams_.Find(peer, urgent);
    if (stream == nullptr) continue;
    if (reachable) {
      stream->CloseAfterWriting();
      stream->CancelAfter(kClosingLimit);
    } else {
      stream->Cancel();
    }
  }
  if (observer_ != nullptr) observer_->OnPeerLost(peer, cause);
  if (loss_observer_ != nullptr && ending_->cause().ok()) loss_observer_->OnPeerLost(peer, cause);
}

// ---- ending -------------------------------------------------------------------------------------

void GrpcTransport::End(const Status& cause, const Status& seen_by_peers) {
  EndWith(cause, ControlFrame(FrameKind::kAbort, peers_.generation, AbortPayload(seen_by_peers)));
}

void GrpcTransport::EndWith(const Status& cause, const OutgoingFrame& last) {
  if (!ending_->Set(cause)) return;
  if (observer_ != nullptr) observer_->OnEnd(cause);
  for (const auto* const lane : {&urgent_, &messages_}) {
    for (const auto& messages : *lane) {
      if (messages != nullptr) messages->End(last);
    }
  }
  for (const auto& stream : streams_.StartClosing()) stream->CloseAfterWriting();
  const bool in_peace = last.header.kind == FrameKind::kGoodbye;
  MutexLock lock(&mutex_);
  closer_ = std::thread([this, in_peace] {
    SetThreadName("rt-grpc-close");
    Close(in_peace ? server_->options.keepalive_timeout : kClosingLimit);
  });
  closer_started_.NotifyAll();
}

// Waits until the peers have seen that we end, and then ends every stream and connection; those
// that gRPC still holds memory for, too.
void GrpcTransport::Close(std::chrono::milliseconds limit) {
  {
    const auto streams = streams_.AwaitEnd(std::chrono::steady_clock::now() + limit);
    for (const auto& stream : streams) stream->Cancel();
    server_->door->Close();
  }  // with a dialled stream goes its connection
  server_->server->Shutdown(std::chrono::system_clock::now() + kClosingLimit / 2);
}

}  // namespace ringtail
