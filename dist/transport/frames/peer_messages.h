// PeerMessages: what two ranks have to say to each other, as frames. It matches messages with
// Receives and keeps the credit, but moves no bytes over a wire: that is for whoever asks it what
// to write (TakeFrames) and tells it what has been read (OnFrames).
//
// A message goes one of two ways. On credit, if the peer has room for it should nobody have asked
// for it yet; in the normal case that is all:
//
//   sender      Send ── kData ──────────────────────────────> copied to its Receive
//               credit again <──────────────── kCredit ────── (once a quarter of it is used up)
//
// And if there is not enough credit, when it is asked for:
//
//   sender      Send ── kRequest ───────────────────────────> waits for its Receive
//               <───────────────────────────── kGrant ─────── Receive
//               ── kData, granted ──────────────────────────> copied to its Receive
//
// So no more than kCreditBytes of messages that nobody has asked for are ever in memory, and
// whatever is asked for comes, because a grant needs no credit. A message costs its bytes and
// kMessageCost of credit, so that not even empty messages are free. On a network it is
// kNetworkCreditBytes: there a request and its grant stand behind all that the kernels hold, up to
// 4 MiB each way (35 ms at 1 Gbit/s), during which credit has to last.
//
// A message is written in chunks, in order and without another message's chunks in between; control
// frames go first, then urgent messages.
//
// Thread-safety: any thread, but OnFrames only one at a time, and TakeFrames only one at a time.
// Errors: every Status that is not OK means that the world has to end; the caller sees to that.
#ifndef RINGTAIL_DIST_TRANSPORT_FRAMES_PEER_MESSAGES_H_
#define RINGTAIL_DIST_TRANSPORT_FRAMES_PEER_MESSAGES_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "dist/transport/frames/byte_cursor.h"
#include "dist/transport/frames/frame.h"
#include "dist/transport/operation.h"

namespace ringtail {

inline constexpr uint64_t kCreditBytes = uint64_t{4} << 20;
inline constexpr uint64_t kNetworkCreditBytes = uint64_t{16} << 20;
inline constexpr uint64_t kMessageCost = 256;

// A frame that is to be written.
struct OutgoingFrame {
  FrameHeader header;
  std::string control_payload;            // of kHello and kAbort
  std::span<const std::byte> payload;     // of kData: a part of the operation's memory
  std::shared_ptr<SendOperation> memory;  // to be kept while `payload` is referred to
};

// A frame without data, but perhaps with a payload.
OutgoingFrame ControlFrame(FrameKind kind, uint32_t generation, std::string payload = "");

class PeerMessages {
 public:
  PeerMessages(int peer, uint32_t generation, std::shared_ptr<Ending> ending);

  // Payloads have no checksum from now on, in neither direction: they do not leave the host.
  void SkipChecksums() RT_EXCLUDES(mutex_);
  // kNetworkCreditBytes for each other instead of kCreditBytes. Both ends, before the first
  // message.
  void LendForNetwork() RT_EXCLUDES(mutex_);

  Status Send(std::shared_ptr<SendOperation> operation) RT_EXCLUDES(mutex_);
  Status Receive(const ReceiveOperation& operation) RT_EXCLUDES(mutex_);

  // The next frames to be written, with about `bytes` of data. None: there is nothing to write.
  std::vector<OutgoingFrame> TakeFrames(size_t bytes) RT_EXCLUDES(mutex_);

  // Whole frames, as they were read.
  Status OnFrames(ByteCursor* bytes) RT_EXCLUDES(mutex_);

  // Completes all operations with the cause in `ending`, and from now on every new one at once.
  // What is still to be written afterwards is `last`.
  void End(OutgoingFrame last) RT_EXCLUDES(mutex_);

  Traffic traffic() const;

  // What the peer has said last of itself.
  enum class PeerState { kHere, kLeft, kStopped };
  PeerState peer_state() const RT_EXCLUDES(mutex_);

 private:
  struct Sending {
    std::shared_ptr<SendOperation> operation;
    bool granted = false;
    size_t written = 0;
  };
  struct Posted {
    ReceiveOperation operation;
    bool granted = false;
  };
  struct Early {
    MessageLabel label;
    std::vector<std::byte> bytes;
  };
  // The message that is coming in, chunk by chunk.
  struct Incoming {
    FrameHeader first;
    std::optional<ReceiveOperation> receive;  // none: early
    std::vector<std::byte> early;
    uint64_t received = 0;
    bool busy = false;  // its memory is being written without the lock
  };

  Status CheckNumber(const FrameHeader& header) RT_EXCLUDES(mutex_);
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
  void QueueControl(FrameKind kind, const MessageLabel& label, uint64_t message_bytes,
                    uint64_t offset) RT_REQUIRES(mutex_);
  void ReturnCredit(uint64_t bytes) RT_REQUIRES(mutex_);
  Status ProtocolError(std::string_view what, const FrameHeader& header) const;
  Status PeerHasLeft() const RT_REQUIRES(mutex_);

  const int peer_;
  const uint32_t generation_;
  const std::shared_ptr<Ending> ending_;

  // Traffic: any thread reads them, and one at a time writes each.
  std::atomic<uint64_t> arrived_{0}, data_sent_{0}, data_received_{0};

  mutable Mutex mutex_;
  bool checksums_ RT_GUARDED_BY(mutex_) = true;
  bool ended_ RT_GUARDED_BY(mutex_) = false;
  PeerState peer_state_ RT_GUARDED_BY(mutex_) = PeerState::kHere;
  // To the peer.
  std::deque<OutgoingFrame> control_ RT_GUARDED_BY(mutex_);
  std::deque<Sending> ready_ RT_GUARDED_BY(mutex_);
  std::map<MessageTag, std::shared_ptr<SendOperation>> requested_ RT_GUARDED_BY(mutex_);
  uint64_t lent_ RT_GUARDED_BY(mutex_) = kCreditBytes;  // by each to the other
  uint64_t credit_ RT_GUARDED_BY(mutex_) = kCreditBytes;
  uint16_t next_out_ RT_GUARDED_BY(mutex_) = 0;  // number of the next frame
  // From the peer.
  uint16_t next_in_ RT_GUARDED_BY(mutex_) = 0;
  PostedMap posted_ RT_GUARDED_BY(mutex_);
  std::map<MessageTag, Early> early_ RT_GUARDED_BY(mutex_);
  std::map<MessageTag, std::pair<MessageLabel, uint64_t>> requests_ RT_GUARDED_BY(mutex_);
  std::optional<Incoming> incoming_ RT_GUARDED_BY(mutex_);
  uint64_t peers_debt_ RT_GUARDED_BY(mutex_) = 0;  // credit that the peer has used
  uint64_t to_return_ RT_GUARDED_BY(mutex_) = 0;   // of it, taken and not yet told
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_FRAMES_PEER_MESSAGES_H_
