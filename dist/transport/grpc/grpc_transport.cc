#include "dist/transport/grpc/grpc_transport.h"

#include <fmt/format.h>

#include <utility>

#include "core/check.h"
#include "core/logging.h"
#include "core/machine/thread_budget.h"
#include "core/stop_signal.h"
#include "dist/transport/frames/control_payload.h"
#include "dist/transport/grpc/grpc_world.h"

namespace ringtail {
namespace {

// For an abort to get through before connections are cut. A peer that has stopped reading may hold
// our memory for as long. A goodbye has as long as a connection may be silent: it comes after all
// that the peers still wait for, and on a network that loses packets that may come late.
constexpr std::chrono::seconds kClosingLimit{2};

// Two listeners at ports of the same address, or two files: what they exchange stays in the memory
// of one machine. Both ends come to the same answer.
bool OnOneHost(const std::string& a, const std::string& b) {
  return a.substr(0, a.rfind(':')) == b.substr(0, b.rfind(':'));
}

}  // namespace

GrpcTransport::GrpcTransport(std::unique_ptr<GrpcServer> server, const GrpcWorld& world)
    : world_(world), server_(std::move(server)), connected_(world.addresses.size()) {
  for (int peer = 0; peer < world_size(); ++peer) {
    messages_.push_back(peer == rank()
                            ? nullptr
                            : std::make_unique<PeerMessages>(peer, world_.generation, ending_));
    if (peer != rank() && OnOneHost(world_.addresses[rank()], world_.addresses[peer])) {
      messages_.back()->SkipChecksums();
    } else if (peer != rank()) {
      messages_.back()->LendForNetwork();
    }
    const bool urgent = peer != rank() && NeedsUrgentStream(peer);
    urgent_.push_back(urgent ? std::make_unique<PeerMessages>(peer, world_.generation, ending_)
                             : nullptr);
    expected_streams_ += peer == rank() ? 0 : urgent ? 2 : 1;
  }
  ShareMemory();
}

// Both ends come to the same answer. What stays in a machine is quick.
bool GrpcTransport::NeedsUrgentStream(int peer) const {
  const bool one_host = !world_.hosts.empty() && !world_.hosts[rank()].empty() &&
                        world_.hosts[peer] == world_.hosts[rank()];
  return !one_host && !OnOneHost(world_.addresses[rank()], world_.addresses[peer]);
}

// With the ranks of this host.
void GrpcTransport::ShareMemory() {
  if (world_.hosts.empty() || world_.hosts[rank()].empty()) return;
  std::map<int, PeerMessages*> neighbours;
  for (int peer = 0; peer < world_size(); ++peer) {
    if (peer != rank() && world_.hosts[peer] == world_.hosts[rank()]) {
      neighbours.emplace(peer, messages_[peer].get());
    }
  }
  if (neighbours.empty()) return;
  auto shared = SharedMemory::Create(
      neighbours, [this](int peer, const Status& status) { OnPeerError(peer, status); });
  if (shared.ok()) {
    shared_ = *std::move(shared);
  } else {
    LogWarning(fmt::format("rank {} talks to the ranks of its host over sockets: {}", rank(),
                           shared.status().message()));
  }
}

GrpcTransport::~GrpcTransport() {
  EndWith({StatusCode::kUnavailable, fmt::format("rank {} has left the world", rank())},
          ControlFrame(FrameKind::kGoodbye, world_.generation));
  std::thread closer;
  {
    MutexLock lock(&mutex_);
    // Whoever has ended it may just be about to start it.
    while (!closer_.joinable()) changed_.Wait(&mutex_);
    closer = std::move(closer_);
  }
  closer.join();
  server_->queue->Shutdown();
  for (std::thread& thread : io_threads_) thread.join();
  if (shared_ != nullptr) shared_->Stop();
  server_->server.reset();
}

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
  std::string missing;
  {
    MutexLock lock(&mutex_);
    while (!closing_ && greeted_ < expected_streams_ && StopSignal() == 0 &&
           std::chrono::steady_clock::now() < deadline) {
      changed_.WaitUntil(&mutex_, NextLookForStop(deadline));
    }
    if (!closing_ && greeted_ == expected_streams_) {
      if (shared_ != nullptr) shared_->CloseSegment();
      return {};
    }
    for (int peer = 0; peer < world_size(); ++peer) {
      const Links& links = connected_[peer];
      const bool complete =
          links.bulk != nullptr && (urgent_[peer] == nullptr || links.urgent != nullptr);
      if (peer == rank() || complete) continue;
      missing +=
          fmt::format("{}rank {} ({})", missing.empty() ? "" : ", ", peer, world_.addresses[peer]);
    }
  }
  const Status stopped = CheckNotStopped();
  Abort(!stopped.ok()
            ? stopped.Annotate(fmt::format("rank {} waited for {}", rank(), missing))
            : Status(StatusCode::kDeadlineExceeded, fmt::format("rank {} has waited {} ms for {}",
                                                                rank(), timeout.count(), missing)));
  return ending_->cause();
}

void GrpcTransport::EndWith(const Status& cause, const OutgoingFrame& last) {
  if (!ending_->Set(cause)) return;
  // What is in the rings stays there to be read; `last` goes over the streams.
  if (shared_ != nullptr) shared_->StopFrames();
  for (const auto* const lane : {&urgent_, &messages_}) {
    for (const auto& messages : *lane) {
      if (messages != nullptr) messages->End(last);
    }
  }
  std::vector<std::shared_ptr<GrpcStream>> streams;
  {
    MutexLock lock(&mutex_);
    for (const Links& links : connected_) streams.push_back(links.urgent);
    for (const Links& links : connected_) streams.push_back(links.bulk);
    closing_ = true;
  }
  for (const auto& stream : streams) {
    if (stream == nullptr) continue;
    stream->Attach(MessagesOf(*stream));
    stream->CloseAfterWriting();
  }
  const bool in_peace = last.header.kind == FrameKind::kGoodbye;
  MutexLock lock(&mutex_);
  closer_ = std::thread([this, in_peace] {
    SetThreadName("rt-grpc-close");
    Close(in_peace ? server_->options.keepalive_timeout : kClosingLimit);
  });
  changed_.NotifyAll();
}

void GrpcTransport::End(const Status& cause, const Status& seen_by_peers) {
  EndWith(cause, ControlFrame(FrameKind::kAbort, world_.generation, AbortPayload(seen_by_peers)));
}

// Waits until the peers have seen that we end, and then ends every stream and connection; those
// that gRPC still holds memory for, too.
void GrpcTransport::Close(std::chrono::milliseconds limit) {
  const Deadline deadline = std::chrono::steady_clock::now() + limit;
  std::vector<std::weak_ptr<GrpcStream>> streams;
  std::vector<Links> connected(world_size());
  {
    MutexLock lock(&mutex_);
    bool in_time = true;
    while (in_time && ended_ < greeted_) in_time = changed_.WaitUntil(&mutex_, deadline);
    streams = streams_;
    connected.swap(connected_);
  }
  for (const auto& weak : streams) {
    if (const auto stream = weak.lock()) stream->Cancel();
  }
  server_->door->Close();
  connected.clear();  // with a dialled stream goes its connection
  server_->server->Shutdown(std::chrono::system_clock::now() + kClosingLimit / 2);
}

// ---- operations ---------------------------------------------------------------------------------

void GrpcTransport::Pump(int peer, bool urgent) {
  if (Carried(peer)) return shared_->Pump(peer);
  std::shared_ptr<GrpcStream> stream;
  {
    MutexLock lock(&mutex_);
    stream = urgent ? connected_[peer].urgent : connected_[peer].bulk;
  }
  if (stream != nullptr) stream->Pump();
}

void GrpcTransport::Send(int peer, const MessageLabel& label, std::span<const std::byte> bytes,
                         CompletionTarget done) {
  RT_CHECK(peer >= 0 && peer < world_size() && peer != rank(), "a peer is another rank");
  if (shared_ != nullptr) done.queue->UseHelper(shared_);
  const Status status =
      MessagesFor(peer, label.tag)
          ->Send(std::make_shared<SendOperation>(peer, label, bytes, done, ending_));
  if (!status.ok()) Abort(status);
  Pump(peer, UsesUrgentStream(peer, label.tag));
}

void GrpcTransport::Receive(int peer, const MessageLabel& label, ReceiveBuffer buffer,
                            CompletionTarget done) {
  RT_CHECK(peer >= 0 && peer < world_size() && peer != rank(), "a peer is another rank");
  if (shared_ != nullptr) done.queue->UseHelper(shared_);
  const Status status =
      MessagesFor(peer, label.tag)
          ->Receive({.peer = peer, .label = label, .buffer = buffer, .done = done});
  if (!status.ok()) Abort(status);
  Pump(peer, UsesUrgentStream(peer, label.tag));
}

// ---- what streams bring -------------------------------------------------------------------------

void GrpcTransport::OnMessage(GrpcStream* stream, ByteCursor* bytes) {
  if (!stream->greeted && !Greet(stream, bytes)) return;
  PeerMessages& messages = *MessagesOf(*stream);
  const Status status =
      Carried(stream->peer) ? shared_->Deliver(stream->peer, bytes) : messages.OnFrames(bytes);
  if (!status.ok()) OnPeerError(stream->peer, status);
  if (messages.peer_state() == PeerMessages::PeerState::kLeft) stream->CloseAfterWriting();
  stream->Pump();
}

bool GrpcTransport::StopWasTold(int peer) const {
  constexpr auto kStopped = PeerMessages::PeerState::kStopped;
  return messages_[peer]->peer_state() == kStopped ||
         (urgent_[peer] != nullptr && urgent_[peer]->peer_state() == kStopped);
}

void GrpcTransport::OnPeerError(int peer, const Status& status) {
  // What a peer has told us goes on as it is: the rank that it comes from is in it.
  End(status, StopWasTold(peer) ? status : AbortSeenByPeer(rank(), status));
}

void GrpcTransport::OnEnd(GrpcStream* stream, const std::string& reason) {
  if (!stream->greeted) {
    if (stream->peer < 0) return;  // a stranger
    Abort({StatusCode::kFailedPrecondition,
           fmt::format("rank {} ({}) did not take rank {} in: {}", stream->peer,
                       world_.addresses[stream->peer], rank(), reason)});
    return;
  }
  const bool told = StopWasTold(stream->peer);  // by it, on one of its streams
  if (!told && MessagesOf(*stream)->peer_state() == PeerMessages::PeerState::kHere) {
    Abort({StatusCode::kUnavailable,
           fmt::format("lost rank {} ({}): {}", stream->peer, world_.addresses[stream->peer],
                       reason.empty() ? "the connection broke" : reason)});
  }
  MutexLock lock(&mutex_);
  ++ended_;
  changed_.NotifyAll();
}

StatusOr<std::unique_ptr<Transport>> ConnectGrpc(std::unique_ptr<GrpcListener> listener,
                                                 const GrpcWorld& world) {
  RT_CHECK(world.rank >= 0 && world.rank < static_cast<int>(world.addresses.size()),
           "this rank is one of the world's");
  // Listen makes no other kind.
  auto transport = std::make_unique<GrpcTransport>(
      std::unique_ptr<GrpcServer>(static_cast<GrpcServer*>(listener.release())), world);
  RT_RETURN_IF_ERROR(transport->Connect());
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace ringtail
