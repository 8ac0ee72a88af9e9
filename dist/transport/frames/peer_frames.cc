// What a peer's frames do; the other half of peer_messages.cc. Nothing in them is believed before
// it has been checked.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "dist/transport/frames/control_payload.h"
#include "dist/transport/frames/payload_landing.h"
#include "dist/transport/frames/peer_messages.h"

namespace ringtail {
namespace {

// Messages that may wait at a peer for their Receive: far more than any plan has, and a bound for
// what a peer can make us remember.
constexpr size_t kMaxRequests = size_t{1} << 20;

}  // namespace

Status PeerMessages::ProtocolError(std::string_view what, const FrameHeader& header) const {
  const MessageTag& tag = header.label.tag;
  return DataLoss(fmt::format(
      "rank {} does not keep to the protocol: {} (frame of kind {}, collective {}, step {}, "
      "segment {}, {} bytes at {} of {})",
      peer_, what, static_cast<int>(header.kind), tag.collective, tag.step, tag.segment,
      header.payload_bytes, header.offset, header.message_bytes));
}

Status PeerMessages::OnFrames(ByteCursor* bytes) {
  while (bytes->left() > 0) {
    std::array<std::byte, kFrameHeaderBytes> encoded;
    if (!bytes->Read(encoded)) return DataLoss(fmt::format("rank {} sent half a frame", peer_));
    StatusOr<FrameHeader> header = DecodeHeader(encoded);
    if (!header.ok()) return header.status().Annotate(fmt::format("from rank {}", peer_));
    if (header->generation != generation_) {
      return FailedPrecondition(fmt::format("rank {} is of generation {} of this job, not {}",
                                            peer_, header->generation, generation_));
    }
    RT_RETURN_IF_ERROR(CheckNumber(*header));
    RT_RETURN_IF_ERROR(OnFrame(*header, bytes));
  }
  return {};
}

Status PeerMessages::CheckNumber(const FrameHeader& header) {
  // A rank's last word counts wherever it stands: what it had taken up before may never have gone.
  if (header.kind == FrameKind::kAbort || header.kind == FrameKind::kGoodbye) return {};
  uint16_t due = 0;
  {
    MutexLock lock(&mutex_);
    due = next_in_++;
  }
  if (header.number == due) return {};
  return ProtocolError(fmt::format("frame {} comes where frame {} is due: some were lost, doubled, "
                                   "or have changed places",
                                   header.number, due),
                       header);
}

Status PeerMessages::OnFrame(const FrameHeader& header, ByteCursor* bytes) {
  if (!IsUrgent(header.label.tag)) ++arrived_;
  if (header.kind == FrameKind::kData && IsData(header.label.tag)) ++data_received_;
  if (header.kind == FrameKind::kData) return OnData(header, bytes);
  if (header.kind == FrameKind::kAbort) return OnStop(header, bytes);
  if (header.payload_bytes > 0) return ProtocolError("a hello in the middle", header);
  MutexLock lock(&mutex_);
  if (!ended_) return OnControl(header);
  // Whoever leaves last may want to know that the others have.
  if (header.kind == FrameKind::kGoodbye) peer_state_ = PeerState::kLeft;
  return {};
}

Status PeerMessages::OnControl(const FrameHeader& header) {
  switch (header.kind) {
    case FrameKind::kRequest:
      return OnRequest(header);
    case FrameKind::kGrant: {
      auto operation = requested_.extract(header.label.tag);
      if (!operation) return ProtocolError("it grants what was not requested", header);
      ready_.push_back({.operation = std::move(operation.mapped()), .granted = true});
      return {};
    }
    case FrameKind::kCredit:
      if (header.offset > lent_ - credit_) {
        return ProtocolError("it returns more credit than it has given", header);
      }
      credit_ += header.offset;
      return {};
    case FrameKind::kGoodbye:
      peer_state_ = PeerState::kLeft;
      if (!posted_.empty() || incoming_ || !ready_.empty() || !requested_.empty()) {
        return PeerHasLeft();
      }
      return {};
    default:
      return ProtocolError("a hello in the middle", header);
  }
}

Status PeerMessages::OnRequest(const FrameHeader& header) {
  const auto posted = posted_.find(header.label.tag);
  if (posted == posted_.end()) {
    if (requests_.size() >= kMaxRequests || early_.contains(header.label.tag) ||
        !requests_.emplace(header.label.tag, std::pair(header.label, header.message_bytes))
             .second) {
      return ProtocolError("a request too many", header);
    }
    return {};
  }
  if (posted->second.granted) return ProtocolError("it requests twice", header);
  return Grant(header.label, header.message_bytes, posted);
}

Status PeerMessages::OnStop(const FrameHeader& header, ByteCursor* bytes) {
  RT_ASSIGN_OR_RETURN(const std::string payload, ReadControlPayload(header, bytes));
  MutexLock lock(&mutex_);
  peer_state_ = PeerState::kStopped;
  return ParseAbort(payload);
}

Status PeerMessages::OnData(const FrameHeader& header, ByteCursor* bytes) {
  if (header.payload_bytes > bytes->left()) {
    return ProtocolError("the frame ends before its payload", header);
  }
  ReceiveBuffer chunk;
  bool checksum = true;
  {
    MutexLock lock(&mutex_);
    if (ended_) return {};
    checksum = checksums_;
    if (!incoming_) RT_RETURN_IF_ERROR(Begin(header));
    Incoming& incoming = *incoming_;
    const FrameHeader& first = incoming.first;
    if (header.label.tag != first.label.tag || header.label.check != first.label.check ||
        header.message_bytes != first.message_bytes || header.granted != first.granted ||
        header.offset != incoming.received ||
        (header.payload_bytes == 0 && header.message_bytes > 0) ||
        (header.payload_bytes % kChunkAlignment != 0 &&
         header.offset + header.payload_bytes < header.message_bytes)) {
      return ProtocolError("a chunk that does not continue its message", header);
    }
    incoming.busy = true;
    if (incoming.receive) {
      chunk = incoming.receive->buffer;
    } else {
      chunk = incoming.early;
    }
    chunk.bytes = chunk.bytes.subspan(header.offset, header.payload_bytes);
  }
  // The bulk of the work, without the lock: `busy` says that the memory is ours.
  const uint32_t crc = LandPayload(bytes, chunk, checksum);
  const bool intact = !checksum || crc == header.payload_crc;

  MutexLock lock(&mutex_);
  Incoming& incoming = *incoming_;
  incoming.busy = false;
  incoming.received += header.payload_bytes;
  if (ended_) {
    if (incoming.receive) incoming.receive->Complete(ending_->cause());
    incoming_.reset();
    return {};
  }
  if (!intact) return ProtocolError("the payload does not have its checksum", header);
  return incoming.received == header.message_bytes ? Finish() : Status();
}

// The first chunk of a message.
Status PeerMessages::Begin(const FrameHeader& header) {
  const MessageTag& tag = header.label.tag;
  const auto posted = posted_.find(tag);
  const bool is_posted = posted != posted_.end();
  if (header.granted != (is_posted && posted->second.granted)) {
    return ProtocolError(header.granted ? "it was not granted" : "it was granted, and asks credit",
                         header);
  }
  if (!header.granted) {
    if (header.message_bytes > lent_ || peers_debt_ + header.message_bytes + kMessageCost > lent_) {
      return ProtocolError("it sends more than it has credit for", header);
    }
    peers_debt_ += header.message_bytes + kMessageCost;
  }
  Incoming incoming{.first = header};
  if (is_posted) {
    RT_RETURN_IF_ERROR(MatchPosted(header.label, header.message_bytes, posted));
    incoming.receive = posted->second.operation;
    posted_.erase(posted);
  } else {
    if (early_.contains(tag) || requests_.contains(tag)) {
      return ProtocolError("a tag that it has used before", header);
    }
    incoming.early.resize(header.message_bytes);
  }
  incoming_ = std::move(incoming);
  return {};
}

// All chunks are there.
Status PeerMessages::Finish() {
  Incoming incoming = *std::exchange(incoming_, std::nullopt);
  if (incoming.receive) {
    incoming.receive->Complete({});
    if (!incoming.first.granted) ReturnCredit(incoming.first.message_bytes + kMessageCost);
    return {};
  }
  Early early{.label = incoming.first.label, .bytes = std::move(incoming.early)};
  // Its Receive may have been posted while it came in.
  if (const auto posted = posted_.extract(early.label.tag)) {
    return TakeEarly(posted.mapped().operation, early);
  }
  early_.emplace(early.label.tag, std::move(early));
  return {};
}

}  // namespace ringtail
