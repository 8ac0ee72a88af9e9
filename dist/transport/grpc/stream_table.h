// StreamTable: the streams of a GrpcTransport: which ranks are connected, which are missing, and
// which streams have ended.
//
//   Remember ──> Admit ──────────────> OnEnd
//   (any)        (greeted, of a rank)  (all of them: nothing of this rank is under way)
//
// Thread-safety: any thread.
#ifndef RINGTAIL_DIST_TRANSPORT_GRPC_STREAM_TABLE_H_
#define RINGTAIL_DIST_TRANSPORT_GRPC_STREAM_TABLE_H_

#include <memory>
#include <vector>

#include "core/mutex.h"
#include "dist/transport/deadline.h"
#include "dist/transport/grpc/grpc_stream.h"

namespace ringtail {

class StreamTable {
 public:
  using Stream = std::shared_ptr<GrpcStream>;

  // `streams[peer]`: how many streams connect it; 0 for this rank, otherwise 1 or, with one for
  // urgent messages, 2.
  explicit StreamTable(std::vector<int> streams);

  // A stream that has been made; it need not be of a rank.
  void Remember(const Stream& stream) RT_EXCLUDES(mutex_);

  enum class Vacancy { kFree, kTaken, kClosing };
  Vacancy Look(int peer, bool urgent) const RT_EXCLUDES(mutex_);
  // The stream of stream->peer, which is greeted. False: closing; the stream is too late to be in
  // what StartClosing returned.
  bool Admit(const Stream& stream) RT_EXCLUDES(mutex_);
  Stream Find(int peer, bool urgent) const RT_EXCLUDES(mutex_);  // null: not connected

  // Waits until all streams are connected, until StartClosing, or for the deadline, but not longer
  // than the process may run (core/stop_signal.h). Whether all are connected.
  bool AwaitAll(Deadline deadline) RT_EXCLUDES(mutex_);
  std::vector<int> Missing() const RT_EXCLUDES(mutex_);  // peers without all of their streams

  // All connected streams, the urgent ones first.
  std::vector<Stream> StartClosing() RT_EXCLUDES(mutex_);
  // A stream of a rank has ended.
  void OnEnd() RT_EXCLUDES(mutex_);
  // Waits until all streams of ranks have ended, or for the deadline. Lets go of all streams, and
  // returns those that still live.
  std::vector<Stream> AwaitEnd(Deadline deadline) RT_EXCLUDES(mutex_);

 private:
  // The streams to a peer.
  struct Links {
    Stream bulk, urgent;  // none before it is greeted
  };
  bool Complete(int peer) const RT_REQUIRES(mutex_);
  const Stream& At(int peer, bool urgent) const RT_REQUIRES(mutex_) {
    return urgent ? links_[peer].urgent : links_[peer].bulk;
  }

  const std::vector<int> expected_;  // by rank
  const int expected_streams_;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::vector<Links> links_ RT_GUARDED_BY(mutex_);  // by rank
  int greeted_ RT_GUARDED_BY(mutex_) = 0;           // streams that have been connected
  int ended_ RT_GUARDED_BY(mutex_) = 0;             // of them, those that have ended
  bool closing_ RT_GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<GrpcStream>> streams_ RT_GUARDED_BY(mutex_);
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_GRPC_STREAM_TABLE_H_
