// Outbox: what a rank has to write to one peer, as frames: control frames first, then messages as
// far as the peer's credit goes (peer_messages.h).
//
//   Add ──credit──> ready_ ────────────────> TakeFrames
//     `─no credit─> requested_ ──OnGrant──> ready_
//
// Thread-safety: none; its owner locks.
#ifndef RINGTAIL_DIST_TRANSPORT_FRAMES_OUTBOX_H_
#define RINGTAIL_DIST_TRANSPORT_FRAMES_OUTBOX_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dist/transport/frames/frame.h"
#include "dist/transport/operation.h"

namespace ringtail {

inline constexpr uint64_t kCreditBytes = uint64_t{4} << 20;
inline constexpr uint64_t kNetworkCreditBytes = uint64_t{16} << 20;
inline constexpr uint64_t kMessageCost = 256;

// A frame that is to be written.
struct OutgoingFrame {
  FrameHeader header;
  std::string control_payload;            // of kHello, kAbort, kGiveUp
  std::span<const std::byte> payload;     // of kData: a part of the operation's memory
  std::shared_ptr<SendOperation> memory;  // to be kept while `payload` is referred to
};

// A frame without data, but perhaps with a payload.
OutgoingFrame ControlFrame(FrameKind kind, uint32_t generation, std::string payload = "");

class Outbox {
 public:
  explicit Outbox(uint32_t generation) : generation_(generation) {}

  // kNetworkCreditBytes instead of kCreditBytes; before the first message.
  void BorrowForNetwork() { borrowed_ = credit_ = kNetworkCreditBytes; }

  void Add(std::shared_ptr<SendOperation> operation);
  // Keeps an operation that will never be written; End completes it.
  void Keep(std::shared_ptr<SendOperation> operation);
  void AddControl(FrameKind kind, const MessageLabel& label, uint64_t message_bytes,
                  uint64_t offset);

  // Frames of the peer. False: they answer nothing that was sent.
  bool OnGrant(const MessageTag& tag);
  bool OnCredit(uint64_t bytes);

  // Whether messages wait to be written.
  bool HasMessages() const { return !ready_.empty() || !requested_.empty(); }
  // The next frames to be written, with about `bytes` of data and without payload checksums.
  std::vector<OutgoingFrame> TakeFrames(size_t bytes);
  // Lets go of all messages. Only `last` is still to be written.
  void End(OutgoingFrame last);

 private:
  struct Sending {
    std::shared_ptr<SendOperation> operation;
    bool granted = false;
    size_t written = 0;
  };

  const uint32_t generation_;
  std::deque<OutgoingFrame> control_;
  std::deque<Sending> ready_;
  std::map<MessageTag, std::shared_ptr<SendOperation>> requested_;
  uint64_t borrowed_ = kCreditBytes;  // the most that credit_ can be
  uint64_t credit_ = kCreditBytes;
  uint16_t next_number_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_FRAMES_OUTBOX_H_
