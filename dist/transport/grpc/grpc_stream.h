// GrpcStream: one bidirectional gRPC stream between two ranks, driven by a completion queue. It
// reads all that arrives, and writes the frames that it is asked to write, one gRPC message after
// the other; each holds as many frames as are ready, up to kWriteBytes of data, or what the wire
// takes in a quarter of a second if that is less: the peer gets whole messages only, and small ones
// on a slow wire show it that this rank lives.
//
//   dialled   Start ───────────────────> OnMessage ... CloseAfterWriting ──> OnEnd
//   accepted  Accept ── they dial us ──> OnMessage ... CloseAfterWriting ──> OnEnd
//
// The payload of a data frame is handed to gRPC as a slice over the sender's memory; the slice
// keeps the SendOperation, and gRPC lets go of the slice when the kernel has the bytes.
//
// Every call of gRPC's that is under way holds a reference to its stream, so that a stream lives at
// least as long as they.
// Thread-safety: any thread; the observer is called on the queue's threads, without a lock held.
#ifndef RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_STREAM_H_
#define RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_STREAM_H_

#include <grpcpp/alarm.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "dist/transport/frames/byte_cursor.h"
#include "dist/transport/frames/peer_messages.h"
#include "dist/transport/transport.grpc.pb.h"

namespace ringtail {

// Data in one gRPC message; more than one segment of a collective, so that one is on its way while
// gRPC fetches the next.
inline constexpr size_t kWriteBytes = size_t{1} << 20;
inline constexpr size_t kLeastWriteBytes = size_t{16} << 10;
// With the frames' headers, and the control frames that go along.
inline constexpr int kMaxGrpcMessageBytes = (1 << 20) + (1 << 17);

// What gRPC gives back when a call has ended; made by NewGrpcTag, and owned by RunGrpcCallbacks.
struct GrpcCallback {
  std::function<void(bool ok)> run;
  // Orders what the thread that starts a call did before what the callback does. gRPC's queue does
  // so, too, but not where a race detector can see it.
  std::atomic<bool> handed_over = false;
};
void* NewGrpcTag(std::function<void(bool ok)> run);
// Until the queue has been shut down and is empty.
void RunGrpcCallbacks(grpc::CompletionQueue* queue);

class GrpcStream : public std::enable_shared_from_this<GrpcStream> {
 public:
  using RawService = TransportService::WithRawMethod_Exchange<TransportService::Service>;

  class Observer {
   public:
    virtual ~Observer() = default;
    // A gRPC message.
    virtual void OnMessage(GrpcStream* stream, ByteCursor* bytes) = 0;
    // Nothing more comes, because of `reason`: once for each stream that has been started.
    virtual void OnEnd(GrpcStream* stream, const std::string& reason) = 0;
  };

  virtual ~GrpcStream() = default;
  GrpcStream(const GrpcStream&) = delete;
  GrpcStream& operator=(const GrpcStream&) = delete;

  // A frame that is written before those of `messages`.
  void WriteFirst(OutgoingFrame frame) RT_EXCLUDES(mutex_);
  // From now on, writes what `messages` has to be written, too; they must outlive the stream.
  void Attach(PeerMessages* messages) RT_EXCLUDES(mutex_);
  // Looks for frames to write. To be called whenever there may be new ones.
  void Pump() RT_EXCLUDES(mutex_);
  // Writes what there is to be written, and no more. The stream ends when both ends have said so;
  // so a rank that has seen its end knows that the other has read everything.
  void CloseAfterWriting() RT_EXCLUDES(mutex_);
  // Ends the stream at once, whatever is under way.
  void Cancel() RT_EXCLUDES(mutex_);
  // Does so after `limit`, if it has not ended by then. Once.
  void CancelAfter(std::chrono::milliseconds limit) RT_EXCLUDES(limit_mutex_);

  // The observer's own notes. It is called by one thread at a time for each stream.
  int peer = -1;
  bool urgent = false;  // the pair's second stream
  std::atomic<bool> greeted = false;

 protected:
  // cancellable: from the beginning, and not only once it has started.
  GrpcStream(grpc::CompletionQueue* queue, Observer* observer, bool cancellable)
      : queue_(queue), observer_(observer), cancellable_(cancellable) {}

  using Handler = void (GrpcStream::*)(bool ok);
  void* Tag(Handler handler);
  void OnStarted(bool ok) RT_EXCLUDES(mutex_);
  void OnRead(bool ok) RT_EXCLUDES(mutex_);
  void OnWritten(bool ok) RT_EXCLUDES(mutex_);
  void OnClosed(bool ok) RT_EXCLUDES(mutex_);
  // The peer's direction has ended, and why is known.
  void End() RT_EXCLUDES(mutex_, limit_mutex_);

  virtual void StartRead(grpc::ByteBuffer* message, void* tag) = 0;
  virtual void StartWrite(const grpc::ByteBuffer& message, void* tag) = 0;
  // All has been written. False: there is nothing to start, the end comes with the peer's.
  virtual bool StartClose() = 0;
  virtual void OnPeerEnded() = 0;  // the peer's direction has ended, and nothing is being written
  virtual std::string Reason() = 0;
  virtual void TryCancel() = 0;

  grpc::CompletionQueue* const queue_;

 private:
  using Clock = std::chrono::steady_clock;

  void WriteNext() RT_EXCLUDES(mutex_);
  void AdaptWriteBytes();  // to what the write that has just ended has shown
  void StopWriting() RT_EXCLUDES(mutex_);
  void Deliver();

  Observer* const observer_;
  Mutex limit_mutex_;  // the alarm may be set, and cancelled, by different threads
  grpc::Alarm limit_ RT_GUARDED_BY(limit_mutex_);
  bool limited_ RT_GUARDED_BY(limit_mutex_) = false;  // or ended: it is not set any more
  grpc::ByteBuffer incoming_;                         // of the read under way

  // Used by the thread that has set writing_.
  size_t write_bytes_ = kWriteBytes / 16;  // of data in the next message
  Clock::time_point write_started_;
  bool write_is_full_ = false;

  Mutex mutex_;
  std::deque<OutgoingFrame> first_ RT_GUARDED_BY(mutex_);
  PeerMessages* messages_ RT_GUARDED_BY(mutex_) = nullptr;
  bool cancellable_ RT_GUARDED_BY(mutex_);
  bool started_ RT_GUARDED_BY(mutex_) = false;
  bool peer_ended_ RT_GUARDED_BY(mutex_) = false;
  bool writing_ RT_GUARDED_BY(mutex_) = false;  // a thread writes, or closes
  bool wanted_ RT_GUARDED_BY(mutex_) = false;   // Pump was called meanwhile
  bool closing_ RT_GUARDED_BY(mutex_) = false;  // once there is nothing to write
  bool closed_ RT_GUARDED_BY(mutex_) = false;   // nothing may be written any more
};

// The stream that this rank opens to a peer.
class DialledStream : public GrpcStream {
 public:
  DialledStream(std::shared_ptr<grpc::Channel> channel, grpc::CompletionQueue* queue,
                Observer* observer);
  void Start();

 private:
  void StartRead(grpc::ByteBuffer* message, void* tag) override { call_->Read(message, tag); }
  void StartWrite(const grpc::ByteBuffer& message, void* tag) override {
    call_->Write(message, tag);
  }
  bool StartClose() override;
  void OnPeerEnded() override;
  std::string Reason() override { return status_.error_message(); }
  void TryCancel() override { context_.TryCancel(); }

  const std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
  grpc::Status status_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

// The stream that a peer, or a stranger, opens to this rank.
class AcceptedStream : public GrpcStream {
 public:
  AcceptedStream(grpc::ServerCompletionQueue* queue, Observer* observer)
      : GrpcStream(queue, observer, false), server_queue_(queue), call_(&context_) {}
  // Waits for the next to dial; `on_dialled` is told when there is one, false at the server's end.
  void Accept(RawService* service, std::function<void(bool ok)> on_dialled);
  // Ends the stream unless it is greeted by then.
  void LimitGreeting(std::chrono::system_clock::time_point deadline);
  void EndLimit() { alarm_.Cancel(); }
  // "ipv4:10.0.0.7:41234", as gRPC writes it. Once a peer has dialled.
  std::string PeerAddress() const { return context_.peer(); }
  // Ends the stream; the peer is told why. Only while nothing has been written.
  void Refuse(const std::string& why);

 private:
  void StartRead(grpc::ByteBuffer* message, void* tag) override { call_.Read(message, tag); }
  void StartWrite(const grpc::ByteBuffer& message, void* tag) override {
    call_.Write(message, tag);
  }
  bool StartClose() override { return false; }
  void OnPeerEnded() override;
  std::string Reason() override { return "the connection broke"; }
  void TryCancel() override { context_.TryCancel(); }
  void Finish(const grpc::Status& status);

  grpc::ServerCompletionQueue* const server_queue_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> call_;
  grpc::Alarm alarm_;
  std::atomic<bool> finished_ = false;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_STREAM_H_
