// GrpcTransport: the Transport that ConnectGrpc makes. Its code is in grpc_transport.cc (life,
// operations, what streams bring) and grpc_greeting.cc (how streams begin).
#ifndef RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_WORLD_H_
#define RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_WORLD_H_

#include <chrono>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "dist/transport/door/log_limiter.h"
#include "dist/transport/frames/control_payload.h"
#include "dist/transport/frames/peer_messages.h"
#include "dist/transport/grpc/grpc_listener.h"
#include "dist/transport/grpc/grpc_stream.h"
#include "dist/transport/grpc/grpc_transport.h"
#include "dist/transport/operation.h"
#include "dist/transport/shared_memory/shared_memory.h"

namespace ringtail {

// Two ranks of different hosts have two streams, each on a connection of its own:
//
//   rank 0   Send(urgent) ──── urgent_ ─── a few bytes, at once ──────── heartbeats
//            Send         ──── messages_ ─ megabytes, as the link goes ─ everything else
//            Abort, goodbye ── both
//
// gRPC asks on the urgent one whether the peer's host lives (keepalive): on the other one the
// question, or the answer, would wait behind the megabytes, and a connection that works would be
// cut.
class GrpcTransport : public Transport, public GrpcStream::Observer {
 public:
  GrpcTransport(std::unique_ptr<GrpcServer> server, const GrpcWorld& world);
  ~GrpcTransport() override;

  Status Connect() RT_EXCLUDES(mutex_);

  int rank() const override { return world_.rank; }
  int world_size() const override { return static_cast<int>(world_.addresses.size()); }
  void Send(int peer, const MessageLabel& label, std::span<const std::byte> bytes,
            CompletionTarget done) override;
  void Receive(int peer, const MessageLabel& label, ReceiveBuffer buffer,
               CompletionTarget done) override;
  Traffic traffic(int peer) const override { return messages_[peer]->traffic(); }
  void Abort(const Status& cause) override { End(cause, AbortSeenByPeer(rank(), cause)); }

  void OnMessage(GrpcStream* stream, ByteCursor* bytes) override;
  void OnEnd(GrpcStream* stream, const std::string& reason) override;

 private:
  // Of the streams to a peer: the one for urgent messages, or the other.
  struct Links {
    std::shared_ptr<GrpcStream> bulk, urgent;  // none before it is greeted
  };
  std::shared_ptr<GrpcStream>* LinkOf(const Hello& hello) RT_REQUIRES(mutex_);
  bool NeedsUrgentStream(int peer) const;
  PeerMessages* MessagesOf(const GrpcStream& stream) const {
    return (stream.urgent ? urgent_ : messages_)[stream.peer].get();
  }
  bool StopWasTold(int peer) const;  // by the peer, on any of its streams
  // Those who take an operation under `tag`.
  PeerMessages* MessagesFor(int peer, const MessageTag& tag) const {
    return (UsesUrgentStream(peer, tag) ? urgent_ : messages_)[peer].get();
  }
  bool UsesUrgentStream(int peer, const MessageTag& tag) const {
    return urgent_[peer] != nullptr && IsUrgent(tag);
  }
  void Pump(int peer, bool urgent) RT_EXCLUDES(mutex_);
  void Dial(int peer, bool urgent) RT_EXCLUDES(mutex_);
  void AcceptNext() RT_EXCLUDES(mutex_);
  void LimitStrangers(AcceptedStream* latest) RT_EXCLUDES(mutex_);
  void ShareMemory();
  bool Carried(int peer) const { return shared_ != nullptr && shared_->Carries(peer); }
  std::unique_ptr<PeerMemory> MapOffer(const Hello& hello) const;
  void OnPeerError(int peer, const Status& status);
  OutgoingFrame HelloFrame(int peer, bool urgent, bool offer, bool shares = false) const;
  StatusOr<Hello> ReadHello(ByteCursor* bytes) const;
  bool Greet(GrpcStream* stream, ByteCursor* bytes) RT_EXCLUDES(mutex_);
  Status CheckStranger(const Hello& hello) RT_EXCLUDES(mutex_);
  void Admit(GrpcStream* stream, int peer) RT_EXCLUDES(mutex_);
  void Remember(const std::shared_ptr<GrpcStream>& stream) RT_EXCLUDES(mutex_);

  void End(const Status& cause, const Status& seen_by_peers);
  void EndWith(const Status& cause, const OutgoingFrame& last) RT_EXCLUDES(mutex_);
  void Close(std::chrono::milliseconds limit) RT_EXCLUDES(mutex_);  // body of closer_

  const GrpcWorld world_;
  const std::unique_ptr<GrpcServer> server_;
  const std::shared_ptr<Ending> ending_ = std::make_shared<Ending>();
  // By rank; none for this one, urgent ones only where there is a stream for them.
  std::vector<std::unique_ptr<PeerMessages>> messages_, urgent_;
  int expected_streams_ = 0;
  std::shared_ptr<SharedMemory> shared_;  // none: all goes over streams

  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<Links> connected_ RT_GUARDED_BY(mutex_);  // by rank
  int greeted_ RT_GUARDED_BY(mutex_) = 0;               // streams that have been connected
  int ended_ RT_GUARDED_BY(mutex_) = 0;                 // of them, those whose stream has ended
  bool closing_ RT_GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<GrpcStream>> streams_ RT_GUARDED_BY(mutex_);  // all that there are
  // Who has dialled and not said hello, the latest last.
  std::deque<std::weak_ptr<GrpcStream>> strangers_ RT_GUARDED_BY(mutex_);
  LogLimiter turned_away_;
  std::thread closer_ RT_GUARDED_BY(mutex_);
  std::vector<std::thread> io_threads_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_WORLD_H_
