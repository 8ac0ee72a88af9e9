#include "dist/transport/grpc_transport.h"

#include <fmt/format.h>

#include <array>
#include <thread>
#include <utility>

#include "core/check.h"
#include "core/logging.h"
#include "core/thread_budget.h"
#include "dist/transport/control_payload.h"
#include "dist/transport/grpc_listener.h"
#include "dist/transport/grpc_stream.h"
#include "dist/transport/peer_messages.h"

namespace ringtail {
namespace {

// For whoever dials to say who it is.
constexpr std::chrono::seconds kGreetingLimit{5};
// For the last frames to get through before connections are cut. A peer that has stopped reading
// may hold our memory for as long.
constexpr std::chrono::seconds kClosingLimit{2};

class GrpcTransport : public Transport, public GrpcStream::Observer {
 public:
  GrpcTransport(std::unique_ptr<GrpcServer> server, const GrpcWorld& world);
  ~GrpcTransport() override;

  Status Connect() RT_EXCLUDES(mutex_);

  int rank() const override { return world_.rank; }
  int world_size() const override { return static_cast<int>(world_.addresses.size()); }
  void Send(int peer, const MessageLabel& label, std::span<const std::byte> bytes,
            CompletionTarget done) override;
  void Receive(int peer, const MessageLabel& label, std::span<std::byte> bytes,
               CompletionTarget done) override;
  void Abort(const Status& cause) override { End(cause, AbortSeenByPeer(rank(), cause)); }

  void OnMessage(GrpcStream* stream, ByteCursor* bytes) override;
  void OnEnd(GrpcStream* stream, const std::string& reason) override;

 private:
  std::shared_ptr<GrpcStream> StreamOf(int peer) RT_EXCLUDES(mutex_);
  void Pump(int peer);
  void Dial(int peer) RT_EXCLUDES(mutex_);
  void AcceptNext() RT_EXCLUDES(mutex_);
  OutgoingFrame HelloFrame(int peer) const;
  StatusOr<Hello> ReadHello(ByteCursor* bytes) const;
  bool Greet(GrpcStream* stream, ByteCursor* bytes) RT_EXCLUDES(mutex_);
  Status CheckStranger(const Hello& hello) RT_EXCLUDES(mutex_);
  void Admit(GrpcStream* stream, int peer) RT_EXCLUDES(mutex_);
  void Remember(const std::shared_ptr<GrpcStream>& stream) RT_EXCLUDES(mutex_);

  void End(const Status& cause, const Status& seen_by_peers);
  void EndWith(const Status& cause, const OutgoingFrame& last) RT_EXCLUDES(mutex_);
  void Close() RT_EXCLUDES(mutex_);  // body of closer_

  const GrpcWorld world_;
  const std::unique_ptr<GrpcServer> server_;
  const std::shared_ptr<Ending> ending_ = std::make_shared<Ending>();
  // By rank; none for this one.
  std::vector<std::unique_ptr<PeerMessages>> messages_;

  Mutex mutex_;
  ConditionVariable changed_;
  // By rank; none before it is greeted.
  std::vector<std::shared_ptr<GrpcStream>> connected_ RT_GUARDED_BY(mutex_);
  int greeted_ RT_GUARDED_BY(mutex_) = 0;  // streams that have been connected
  int ended_ RT_GUARDED_BY(mutex_) = 0;    // of them, those whose stream has ended
  bool closing_ RT_GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<GrpcStream>> streams_ RT_GUARDED_BY(mutex_);  // all that there are
  std::thread closer_ RT_GUARDED_BY(mutex_);
  std::vector<std::thread> io_threads_;
};

// ---- life ----------------------------------------------------------------------------------------

GrpcTransport::GrpcTransport(std::unique_ptr<GrpcServer> server, const GrpcWorld& world)
    : world_(world), server_(std::move(server)), connected_(world.addresses.size()) {
  for (int peer = 0; peer < world_size(); ++peer) {
    messages_.push_back(peer == rank()
                            ? nullptr
                            : std::make_unique<PeerMessages>(peer, world_.generation, ending_));
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
  for (int peer = 0; peer < rank(); ++peer) Dial(peer);

  const auto timeout = server_->options.connect_timeout;
  const Deadline deadline = std::chrono::steady_clock::now() + timeout;
  std::string missing;
  {
    MutexLock lock(&mutex_);
    bool in_time = true;
    while (in_time && !closing_ && greeted_ + 1 < world_size()) {
      in_time = changed_.WaitUntil(&mutex_, deadline);
    }
    if (!closing_ && greeted_ + 1 == world_size()) return {};
    for (int peer = 0; peer < world_size(); ++peer) {
      if (peer == rank() || connected_[peer] != nullptr) continue;
      missing +=
          fmt::format("{}rank {} ({})", missing.empty() ? "" : ", ", peer, world_.addresses[peer]);
    }
  }
  Abort({StatusCode::kDeadlineExceeded,
         fmt::format("rank {} has waited {} ms for {}", rank(), timeout.count(), missing)});
  return ending_->cause();
}

void GrpcTransport::EndWith(const Status& cause, const OutgoingFrame& last) {
  if (!ending_->Set(cause)) return;
  for (const auto& messages : messages_) {
    if (messages != nullptr) messages->End(last);
  }
  std::vector<std::shared_ptr<GrpcStream>> streams;
  {
    MutexLock lock(&mutex_);
    streams = connected_;
    closing_ = true;
  }
  for (const auto& stream : streams) {
    if (stream != nullptr) stream->CloseAfterWriting();
  }
  MutexLock lock(&mutex_);
  closer_ = std::thread([this] {
    SetThreadName("rt-grpc-close");
    Close();
  });
  changed_.NotifyAll();
}

void GrpcTransport::End(const Status& cause, const Status& seen_by_peers) {
  EndWith(cause, ControlFrame(FrameKind::kAbort, world_.generation, AbortPayload(seen_by_peers)));
}

// Waits until the peers have seen that we end, and then ends every stream and connection; those
// that gRPC still holds memory for, too.
void GrpcTransport::Close() {
  const Deadline deadline = std::chrono::steady_clock::now() + kClosingLimit;
  std::vector<std::weak_ptr<GrpcStream>> streams;
  std::vector<std::shared_ptr<GrpcStream>> connected(world_size());
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
  connected.clear();  // with a dialled stream goes its connection
  server_->server->Shutdown(std::chrono::system_clock::now() + kClosingLimit / 2);
}

// ---- operations ----------------------------------------------------------------------------------

std::shared_ptr<GrpcStream> GrpcTransport::StreamOf(int peer) {
  MutexLock lock(&mutex_);
  return connected_[peer];
}

void GrpcTransport::Pump(int peer) {
  if (const auto stream = StreamOf(peer)) stream->Pump();
}

void GrpcTransport::Send(int peer, const MessageLabel& label, std::span<const std::byte> bytes,
                         CompletionTarget done) {
  RT_CHECK(peer >= 0 && peer < world_size() && peer != rank(), "a peer is another rank");
  const Status status =
      messages_[peer]->Send(std::make_shared<SendOperation>(peer, label, bytes, done, ending_));
  if (!status.ok()) Abort(status);
  Pump(peer);
}

void GrpcTransport::Receive(int peer, const MessageLabel& label, std::span<std::byte> bytes,
                            CompletionTarget done) {
  RT_CHECK(peer >= 0 && peer < world_size() && peer != rank(), "a peer is another rank");
  const Status status =
      messages_[peer]->Receive({.peer = peer, .label = label, .bytes = bytes, .done = done});
  if (!status.ok()) Abort(status);
  Pump(peer);
}

// ---- what streams bring --------------------------------------------------------------------------

void GrpcTransport::OnMessage(GrpcStream* stream, ByteCursor* bytes) {
  if (!stream->greeted && !Greet(stream, bytes)) return;
  PeerMessages& messages = *messages_[stream->peer];
  const Status status = messages.OnFrames(bytes);
  const PeerMessages::PeerState state = messages.peer_state();
  if (!status.ok()) {
    // What a peer has told us goes on as it is: the rank that it comes from is in it.
    End(status,
        state == PeerMessages::PeerState::kStopped ? status : AbortSeenByPeer(rank(), status));
  }
  if (state == PeerMessages::PeerState::kLeft) stream->CloseAfterWriting();
  stream->Pump();
}

void GrpcTransport::OnEnd(GrpcStream* stream, const std::string& reason) {
  if (!stream->greeted) {
    if (stream->peer < 0) return;  // a stranger
    Abort({StatusCode::kFailedPrecondition,
           fmt::format("rank {} ({}) did not take rank {} in: {}", stream->peer,
                       world_.addresses[stream->peer], rank(), reason)});
    return;
  }
  if (messages_[stream->peer]->peer_state() == PeerMessages::PeerState::kHere) {
    Abort({StatusCode::kUnavailable,
           fmt::format("lost rank {} ({}): {}", stream->peer, world_.addresses[stream->peer],
                       reason.empty() ? "the connection broke" : reason)});
  }
  MutexLock lock(&mutex_);
  ++ended_;
  changed_.NotifyAll();
}

// ---- connecting ----------------------------------------------------------------------------------

void GrpcTransport::Remember(const std::shared_ptr<GrpcStream>& stream) {
  MutexLock lock(&mutex_);
  std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
  streams_.push_back(stream);
}

void GrpcTransport::Dial(int peer) {
  const auto stream = std::make_shared<DialledStream>(
      DialGrpc(world_.addresses[peer], server_->options), server_->queue.get(), this);
  stream->peer = peer;
  stream->WriteFirst(HelloFrame(peer));
  Remember(stream);
  stream->Start();
}

void GrpcTransport::AcceptNext() {
  const auto stream = std::make_shared<AcceptedStream>(server_->queue.get(), this);
  Remember(stream);
  AcceptedStream* const accepted = stream.get();  // the call under way holds it
  stream->Accept(&server_->service, [this, accepted](bool ok) {
    if (!ok) return;
    accepted->LimitGreeting(std::chrono::system_clock::now() + kGreetingLimit);
    AcceptNext();
  });
}

OutgoingFrame GrpcTransport::HelloFrame(int peer) const {
  return ControlFrame(FrameKind::kHello, world_.generation,
                      HelloPayload({.rank = rank(), .peer = peer, .world_size = world_size()}));
}

StatusOr<Hello> GrpcTransport::ReadHello(ByteCursor* bytes) const {
  std::array<std::byte, kFrameHeaderBytes> encoded;
  if (!bytes->Read(encoded)) return DataLoss("less than a frame");
  RT_ASSIGN_OR_RETURN(const FrameHeader header, DecodeHeader(encoded));
  if (header.kind != FrameKind::kHello) return DataLoss("no hello");
  if (header.generation != world_.generation) {
    return FailedPrecondition(fmt::format("this is generation {} of the job, not {}",
                                          world_.generation, header.generation));
  }
  RT_ASSIGN_OR_RETURN(const std::string payload, ReadControlPayload(header, bytes));
  RT_ASSIGN_OR_RETURN(const Hello hello, ParseHello(payload));
  if (hello.peer != rank()) {
    return FailedPrecondition(fmt::format("this is rank {}, not {}", rank(), hello.peer));
  }
  if (hello.world_size != world_size()) {
    return FailedPrecondition(
        fmt::format("this world has {} ranks, not {}", world_size(), hello.world_size));
  }
  return hello;
}

Status GrpcTransport::CheckStranger(const Hello& hello) {
  if (hello.rank <= rank() || hello.rank >= world_size()) {
    return FailedPrecondition(fmt::format("rank {} does not dial rank {}", hello.rank, rank()));
  }
  MutexLock lock(&mutex_);
  if (closing_) return FailedPrecondition(fmt::format("rank {} is leaving", rank()));
  if (connected_[hello.rank] != nullptr) {
    return AlreadyExists(fmt::format("there is a rank {} already", hello.rank));
  }
  return {};
}

// The first message of a stream. False: this is nobody to talk to.
bool GrpcTransport::Greet(GrpcStream* stream, ByteCursor* bytes) {
  const StatusOr<Hello> hello = ReadHello(bytes);
  if (stream->peer >= 0) {  // the answer of a rank that we have dialled
    if (hello.ok() && hello->rank == stream->peer) {
      Admit(stream, stream->peer);
      return true;
    }
    Abort({StatusCode::kFailedPrecondition,
           fmt::format(
               "whoever answers at {} is not rank {}: {}", world_.addresses[stream->peer],
               stream->peer,
               hello.ok() ? fmt::format("it is rank {}", hello->rank) : hello.status().message())});
    return false;
  }
  auto* const accepted = static_cast<AcceptedStream*>(stream);
  const Status status = hello.ok() ? CheckStranger(*hello) : hello.status();
  if (!status.ok()) {
    LogWarning(fmt::format("rank {} turned away a connection: {}", rank(), status.message()));
    accepted->Refuse(status.message());
    return false;
  }
  accepted->EndLimit();
  stream->WriteFirst(HelloFrame(hello->rank));
  Admit(stream, hello->rank);
  return true;
}

void GrpcTransport::Admit(GrpcStream* stream, int peer) {
  stream->peer = peer;
  stream->greeted = true;
  stream->Attach(messages_[peer].get());
  bool closing = false;
  {
    MutexLock lock(&mutex_);
    connected_[peer] = stream->shared_from_this();
    ++greeted_;
    closing = closing_;
    changed_.NotifyAll();
  }
  if (closing) stream->CloseAfterWriting();  // it came too late to be told with the others
}

}  // namespace

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
