// GrpcTransport: the Transport of a GrpcListener (grpc_listener.h).
//
// Two ranks of different hosts have two streams, each on a connection of its own:
//
//   rank 0   Send(urgent) ──── urgent_ ─── a few bytes, at once ──────── heartbeats
//            Send         ──── messages_ ─ megabytes, as the link goes ─ everything else
//            Abort, goodbye ── both
//
// gRPC probes the peer's host on the urgent one (keepalive): on the other one the probe, or its
// answer, would wait behind the megabytes, and a connection that works would be cut.
//
// Life: Connect dials and accepts until every pair has greeted each other (greeter.h); EndWith,
// once, completes all operations, says the last word on every stream, and starts a thread that
// closes what the peers have read, or what they do not read in time. Lose does the same for one
// peer, in a transport that tolerates losses. Thread-safety: any thread;
// streams call OnMessage and OnEnd on "rt-grpc".
#ifndef RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_TRANSPORT_H_
#define RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_TRANSPORT_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "dist/transport/door/log_limiter.h"
#include "dist/transport/frames/peer_messages.h"
#include "dist/transport/grpc/greeter.h"
#include "dist/transport/grpc/grpc_server.h"
#include "dist/transport/grpc/grpc_stream.h"
#include "dist/transport/grpc/stream_table.h"
#include "dist/transport/operation.h"
#include "dist/transport/transport_listener.h"

namespace ringtail {

class GrpcTransport : public Transport, public GrpcStream::Observer {
 public:
  // `observer` may be null.
  GrpcTransport(std::unique_ptr<GrpcServer> server, const PeerTable& peers,
                TransportObserver* observer);
  ~GrpcTransport() override;

  Status Connect();

  int rank() const override { return peers_.rank; }
  int world_size() const override { return peers_.world_size(); }
  void Abort(const Status& cause) override { End(cause, AbortSeenByPeer(rank(), cause)); }
  Status EndCause() const override { return ending_->cause(); }
  Status TolerateLosses(std::shared_ptr<PeerLossObserver> observer) override;

  void OnMessage(GrpcStream* stream, ByteCursor* bytes) override;
  void OnEnd(GrpcStream* stream, const std::string& reason) override;

 private:
  // ---- operations
  void StartSend(int peer, const MessageLabel& label, std::span<const std::byte> bytes,
                 CompletionTarget done) override;
  void StartReceive(int peer, const MessageLabel& label, ReceiveBuffer buffer,
                    CompletionTarget done) override;
  Traffic TrafficWith(int peer) const override { return messages_[peer]->traffic(); }
  Status CauseWith(int peer) const override { return peer_endings_[peer]->cause(); }
  void LosePeer(int peer, const Status& cause) override;
  PeerMessages* MessagesOf(const GrpcStream& stream) const {
    return (stream.urgent ? urgent_ : messages_)[stream.peer].get();
  }
  // The messages that take an operation under `tag`.
  PeerMessages* MessagesFor(int peer, const MessageTag& tag) const {
    return (UsesUrgentStream(peer, tag) ? urgent_ : messages_)[peer].get();
  }
  bool UsesUrgentStream(int peer, const MessageTag& tag) const {
    return urgent_[peer] != nullptr && IsUrgent(tag);
  }
  void Pump(int peer, bool urgent);

  // ---- connecting
  void Dial(int peer, bool urgent);
  void AcceptNext();
  bool Greet(GrpcStream* stream, ByteCursor* bytes);
  Status CheckNewcomer(const Hello& hello);
  void Admit(GrpcStream* stream, int peer);
  std::string DescribeMissing() const;

  // ---- ending
  // What the peer has said on any of its streams.
  bool HasSaid(int peer, PeerMessages::PeerState state) const;
  void OnFramesFailed(int peer, const Status& status);
  void Lose(int peer, const Status& cause, bool reachable);
  void End(const Status& cause, const Status& seen_by_peers);
  void EndWith(const Status& cause, const OutgoingFrame& last) RT_EXCLUDES(mutex_);
  void Close(std::chrono::milliseconds limit);  // body of closer_

  const PeerTable peers_;
  const Greeter greeter_{&peers_};
  TransportObserver* const observer_;
  const std::unique_ptr<GrpcServer> server_;
  const std::shared_ptr<Ending> ending_ = std::make_shared<Ending>();
  std::vector<std::shared_ptr<Ending>> peer_endings_;  // by rank
  std::atomic<bool> tolerant_ = false;
  std::shared_ptr<PeerLossObserver> loss_observer_;  // set before tolerant_
  // By rank; none for this one, urgent ones only where there is a stream for them.
  std::vector<std::unique_ptr<PeerMessages>> messages_, urgent_;
  StreamTable streams_;
  LogLimiter turned_away_;
  std::vector<std::thread> io_threads_;

  Mutex mutex_;
  ConditionVariable closer_started_;
  std::thread closer_ RT_GUARDED_BY(mutex_);
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_TRANSPORT_H_
