// PeerMessages: the messages between this rank and one peer, as frames. It matches messages with
// Receives and keeps the credit, but moves no bytes over a wire: its owner asks it what to write
// (TakeFrames) and tells it what has been read (OnFrames).
//
// A message goes one of two ways. On credit, if the peer has room for it in case it has not been
// asked for yet; normally that is all:
//
//   sender      Send ── kData ──────────────────────────────> copied to its Receive
//               credit again <──────────────── kCredit ────── (once a quarter of it is used up)
//
// Without enough credit, when it is asked for:
//
//   sender      Send ── kRequest ───────────────────────────> waits for its Receive
//               <───────────────────────────── kGrant ─────── Receive
//               ── kData, granted ──────────────────────────> copied to its Receive
//
// So no more than kCreditBytes of messages that have not been asked for are ever in memory, and
// every message that is asked for comes, because a grant needs no credit. A message costs its bytes
// and kMessageCost of credit, so that not even empty messages are free. On a network the credit is
// kNetworkCreditBytes: there a request and its grant wait behind all that the kernels hold, up to 4
// MiB each way (35 ms at 1 Gbit/s), and credit has to last that long.
//
// A message is written in chunks, in order and without another message's chunks in between; control
// frames go first, then urgent messages.
//
//   Send ──> Outbox ──> TakeFrames ─── wire ───> FrameReader ──> OnFrames ──> Receive
//
// Thread-safety: any thread, but OnFrames only one at a time, and TakeFrames only one at a time.
// Errors: every Status that is not OK means that the world has to end, or that this peer is lost;
// the caller sees to that.
#ifndef RINGTAIL_DIST_TRANSPORT_FRAMES_PEER_MESSAGES_H_
#define RINGTAIL_DIST_TRANSPORT_FRAMES_PEER_MESSAGES_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "dist/transport/frames/byte_cursor.h"
#include "dist/transport/frames/frame.h"
#include "dist/transport/frames/frame_reader.h"
#include "dist/transport/frames/outbox.h"
#include "dist/transport/operation.h"

namespace ringtail {

class PeerMessages {
 public:
  // `ending`: of what this rank has to do with the peer.
  PeerMessages(int peer, uint32_t generation, std::shared_ptr<Ending> ending);

  // From now on payloads have no checksum, in either direction: they do not leave the host.
  void SkipChecksums() RT_EXCLUDES(mutex_);
  // kNetworkCreditBytes for each other instead of kCreditBytes. At both ends, before the first
  // message.
  void LendForNetwork() RT_EXCLUDES(mutex_);

  Status Send(std::shared_ptr<SendOperation> operation) RT_EXCLUDES(mutex_);
  Status Receive(const ReceiveOperation& operation) RT_EXCLUDES(mutex_);

  // The next frames to be written, with about `bytes` of data. None: there is nothing to write.
  std::vector<OutgoingFrame> TakeFrames(size_t bytes) RT_EXCLUDES(mutex_);

  // Whole frames, as they were read.
  Status OnFrames(ByteCursor* bytes) RT_EXCLUDES(mutex_);

  // The peer has left in peace: it sends nothing more. An error if something still waits for it.
  Status OnPeerLeft() RT_EXCLUDES(mutex_);

  // Completes all operations with the cause in `ending`, and from now on every new one at once.
  // Only `last` is still to be written afterwards.
  void End(OutgoingFrame last) RT_EXCLUDES(mutex_);

  Traffic traffic() const;

  // What the peer has last said about itself.
  enum class PeerState { kHere, kLeft, kStopped, kGaveThisRankUp };
  PeerState peer_state() const RT_EXCLUDES(mutex_);

 private:
  struct Posted {
    ReceiveOperation operation;
    bool granted = false;
  };
  struct Early {
    MessageLabel label;
    std::vector<std::byte> bytes;
  };
  // The message that is arriving, chunk by chunk.
  struct Incoming {
    FrameHeader first;
    std::optional<ReceiveOperation> receive;  // none: early
    std::vector<std::byte> early;
    uint64_t received = 0;
    bool busy = false;  // its memory is being written without the lock
  };

  Status OnFrame(const FrameHeader& header, ByteCursor* bytes) RT_EXCLUDES(mutex_);
  Status OnData(const FrameHeader& header, ByteCursor* bytes) RT_EXCLUDES(mutex_);
  Status OnStop(const FrameHeader& header, ByteCursor* bytes) RT_EXCLUDES(mutex_);
  Status OnControl(const FrameHeader& header) RT_REQUIRES(mutex_);
  Status OnRequest(const FrameHeader& header) RT_REQUIRES(mutex_);
  Status Begin(const FrameHeader& header) RT_REQUIRES(mutex_);
  Status Finish() RT_REQUIRES(mutex_);
  using PostedMap = std::map<MessageTag, Posted>;
  // CheckMatch; if it fails, `posted` completes with that.
  Status MatchPosted(const MessageLabel& sent, uint64_t bytes, PostedMap::iterator posted)
      RT_REQUIRES(mutex_);
  Status Grant(const MessageLabel& sent, uint64_t bytes, PostedMap::iterator posted)
      RT_REQUIRES(mutex_);
  Status TakeEarly(const ReceiveOperation& operation, const Early& early) RT_REQUIRES(mutex_);
  void ReturnCredit(uint64_t bytes) RT_REQUIRES(mutex_);
  Status Violation(std::string_view what, const FrameHeader& header) const {
    return ProtocolError(peer_, what, header);
  }
  Status PeerLeft() RT_REQUIRES(mutex_);
  Status PeerHasLeft() const RT_REQUIRES(mutex_);

  const int peer_;
  const std::shared_ptr<Ending> ending_;
  FrameReader reader_;  // of the thread in OnFrames

  // Traffic: any thread reads them, and one at a time writes each.
  std::atomic<uint64_t> arrived_{0}, data_sent_{0}, data_received_{0};

  mutable Mutex mutex_;
  bool checksums_ RT_GUARDED_BY(mutex_) = true;
  bool ended_ RT_GUARDED_BY(mutex_) = false;
  PeerState peer_state_ RT_GUARDED_BY(mutex_) = PeerState::kHere;
  Outbox outbox_ RT_GUARDED_BY(mutex_);
  // From the peer.
  PostedMap posted_ RT_GUARDED_BY(mutex_);
  std::map<MessageTag, Early> early_ RT_GUARDED_BY(mutex_);
  std::map<MessageTag, std::pair<MessageLabel, uint64_t>> requests_ RT_GUARDED_BY(mutex_);
  std::optional<Incoming> incoming_ RT_GUARDED_BY(mutex_);
  uint64_t lent_ RT_GUARDED_BY(mutex_) = kCreditBytes;  // to the peer
  uint64_t peers_debt_ RT_GUARDED_BY(mutex_) = 0;       // credit that the peer has used
  uint64_t to_return_ RT_GUARDED_BY(mutex_) = 0;        // of it, taken and not yet told
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_FRAMES_PEER_MESSAGES_H_
