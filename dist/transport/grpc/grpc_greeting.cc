// How streams between ranks begin: who dials says hello, who is dialled checks it and answers, and
// both know whom they talk to before a message is read.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/logging.h"
#include "dist/transport/frames/frame.h"
#include "dist/transport/frames/keyed_hash.h"
#include "dist/transport/grpc/grpc_listener.h"
#include "dist/transport/grpc/grpc_world.h"

namespace ringtail {
namespace {

// For whoever dials to say who it is.
constexpr std::chrono::seconds kGreetingLimit = kStrangerLimit;
// Who have not done so yet, besides as many as there are ranks.
constexpr size_t kMaxStrangers = 64;

}  // namespace

void GrpcTransport::Remember(const std::shared_ptr<GrpcStream>& stream) {
  MutexLock lock(&mutex_);
  std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
  streams_.push_back(stream);
}

void GrpcTransport::Dial(int peer, bool urgent) {
  GrpcOptions options = server_->options;
  if (!urgent && urgent_[peer] != nullptr) options.keepalive_time = kNoKeepalive;
  const auto stream = std::make_shared<DialledStream>(DialGrpc(world_.addresses[peer], options),
                                                      server_->queue.get(), this);
  stream->peer = peer;
  stream->urgent = urgent;
  const bool offer = shared_ != nullptr && shared_->MayShareWith(peer);
  stream->WriteFirst(HelloFrame(peer, urgent, offer));
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
    LimitStrangers(accepted);
    AcceptNext();
  });
}

// Each who has not said hello may hold a gRPC message of our memory. If there are too many, the one
// that has been silent for longest goes: ranks say hello at once.
void GrpcTransport::LimitStrangers(AcceptedStream* latest) {
  std::vector<std::shared_ptr<GrpcStream>> gone;  // destroyed without the lock
  {
    MutexLock lock(&mutex_);
    std::erase_if(strangers_, [&](const auto& weak) {
      const auto stream = weak.lock();
      return stream == nullptr || stream->greeted;
    });
    strangers_.push_back(latest->weak_from_this());
    while (strangers_.size() > connected_.size() + kMaxStrangers) {
      gone.push_back(strangers_.front().lock());
      strangers_.pop_front();
    }
  }
  for (const auto& stream : gone) {
    if (stream != nullptr) stream->Cancel();
  }
}

OutgoingFrame GrpcTransport::HelloFrame(int peer, bool urgent, bool offer, bool shares) const {
  Hello hello{
      .rank = rank(), .peer = peer, .world_size = world_size(), .urgent = urgent, .shares = shares};
  hello.proof = HelloProof(world_.secret, world_.generation, hello);
  if (offer) hello.shared = shared_->OfferTo(peer);
  return ControlFrame(FrameKind::kHello, world_.generation, HelloPayload(hello));
}

// The peer's memory, if it offers some and we can have it.
std::unique_ptr<PeerMemory> GrpcTransport::MapOffer(const Hello& hello) const {
  if (!hello.shared || shared_ == nullptr || !shared_->MayShareWith(hello.rank)) return nullptr;
  StatusOr<PeerMemory> memory = PeerMemory::Map(*hello.shared);
  if (memory.ok()) return std::make_unique<PeerMemory>(*std::move(memory));
  LogWarning(fmt::format("rank {} talks to rank {} over a socket, not through shared memory: {}",
                         rank(), hello.rank, memory.status().message()));
  return nullptr;
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
  if (!EqualInConstantTime(hello.proof, HelloProof(world_.secret, world_.generation, hello))) {
    return Status(StatusCode::kPermissionDenied, "whoever speaks does not know the job's secret");
  }
  return hello;
}

std::shared_ptr<GrpcStream>* GrpcTransport::LinkOf(const Hello& hello) {
  Links& links = connected_[hello.rank];
  return hello.urgent ? &links.urgent : &links.bulk;
}

Status GrpcTransport::CheckStranger(const Hello& hello) {
  if (hello.rank <= rank() || hello.rank >= world_size()) {
    return FailedPrecondition(fmt::format("rank {} does not dial rank {}", hello.rank, rank()));
  }
  if (hello.urgent && urgent_[hello.rank] == nullptr) {
    return FailedPrecondition(
        fmt::format("rank {} needs one stream to rank {}", hello.rank, rank()));
  }
  MutexLock lock(&mutex_);
  if (closing_) return FailedPrecondition(fmt::format("rank {} is leaving", rank()));
  if (*LinkOf(hello) != nullptr) {
    return AlreadyExists(fmt::format("there is a rank {} already", hello.rank));
  }
  return {};
}

// The first message of a stream; and of one whose rank shares memory with us, the first two:
//
//   dials     hello, an offer ──────────────────> maps it
//             maps it <────────────────────────── hello, an offer
//             hello, shares or not ─────────────>
//
// False: this is nobody to talk to, or not yet.
bool GrpcTransport::Greet(GrpcStream* stream, ByteCursor* bytes) {
  const StatusOr<Hello> hello = ReadHello(bytes);
  if (stream->peer >= 0) {  // the answer of a rank that we have dialled
    if (hello.ok() && hello->rank == stream->peer && hello->urgent == stream->urgent) {
      if (hello->shared) {
        auto memory = MapOffer(*hello);
        stream->WriteFirst(HelloFrame(stream->peer, stream->urgent, false, memory != nullptr));
        if (memory != nullptr) shared_->Start(stream->peer, std::move(*memory));
      }
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
    if (const auto note = turned_away_.Allow()) {
      LogWarning(fmt::format("rank {} turned away a connection from {}: {}{}", rank(),
                             accepted->PeerAddress(), status.message(), *note));
    }
    accepted->Refuse(status.message());
    return false;
  }
  const bool confirms = stream->memory != nullptr;  // the third frame
  if (!confirms) {
    stream->memory = MapOffer(*hello);
    stream->WriteFirst(HelloFrame(hello->rank, hello->urgent, stream->memory != nullptr));
    if (stream->memory != nullptr) return false;  // until it has tried to map ours
  }
  accepted->EndLimit();
  server_->door->Proved(accepted->PeerAddress());
  if (confirms && hello->shares) shared_->Start(hello->rank, std::move(*stream->memory));
  stream->memory.reset();
  stream->urgent = hello->urgent;
  Admit(stream, hello->rank);
  return true;
}

void GrpcTransport::Admit(GrpcStream* stream, int peer) {
  stream->peer = peer;
  stream->greeted = true;
  const bool carried = Carried(peer);  // by shared memory: the stream has nothing to write
  if (!carried) stream->Attach(MessagesOf(*stream));
  bool closing = false;
  {
    MutexLock lock(&mutex_);
    (stream->urgent ? connected_[peer].urgent : connected_[peer].bulk) = stream->shared_from_this();
    ++greeted_;
    closing = closing_;
    changed_.NotifyAll();
  }
  if (!closing) {
    if (peer < rank() && !stream->urgent && urgent_[peer] != nullptr) Dial(peer, /*urgent=*/true);
    return;
  }
  if (carried) stream->Attach(MessagesOf(*stream));
  stream->CloseAfterWriting();  // it came too late to be told with the others
}

}  // namespace ringtail
