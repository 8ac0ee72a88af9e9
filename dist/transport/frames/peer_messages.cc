#include "dist/transport/frames/peer_messages.h"

#include <fmt/format.h>

#include <utility>

#include "core/check.h"
#include "core/storage/crc32c.h"
#include "dist/transport/frames/control_payload.h"
#include "dist/transport/frames/payload_landing.h"

namespace ringtail {
namespace {

// Messages that may wait at a peer for their Receive: far more than any plan has, and a bound for
// what a peer can make us remember.
constexpr size_t kMaxRequests = size_t{1} << 20;

}  // namespace

PeerMessages::PeerMessages(int peer, uint32_t generation, std::shared_ptr<Ending> ending)
    : peer_(peer), ending_(std::move(ending)), reader_(peer, generation), outbox_(generation) {}

void PeerMessages::SkipChecksums() {
  MutexLock lock(&mutex_);
  checksums_ = false;
}

void PeerMessages::LendForNetwork() {
  MutexLock lock(&mutex_);
  lent_ = kNetworkCreditBytes;
  outbox_.BorrowForNetwork();
}

Traffic PeerMessages::traffic() const {
  return {.arrived = arrived_, .sent = data_sent_, .received = data_received_};
}

PeerMessages::PeerState PeerMessages::peer_state() const {
  MutexLock lock(&mutex_);
  return peer_state_;
}

// OK if it has stopped: the thread that read its last word is about to end the transport with the
// peer's own cause, which must not lose against this one.
Status PeerMessages::PeerHasLeft() const {
  if (peer_state_ != PeerState::kLeft) return {};
  return {StatusCode::kUnavailable, fmt::format("rank {} has left the world", peer_)};
}

Status PeerMessages::PeerLeft() {
  peer_state_ = PeerState::kLeft;
  return posted_.empty() && !incoming_ && !outbox_.HasMessages() ? Status() : PeerHasLeft();
}

Status PeerMessages::OnPeerLeft() {
  MutexLock lock(&mutex_);
  return ended_ ? Status() : PeerLeft();
}

void PeerMessages::ReturnCredit(uint64_t bytes) {
  to_return_ += bytes;
  if (to_return_ < lent_ / 4) return;
  peers_debt_ -= to_return_;
  outbox_.AddControl(FrameKind::kCredit, {}, 0, std::exchange(to_return_, 0));
}

Status PeerMessages::Send(std::shared_ptr<SendOperation> operation) {
  MutexLock lock(&mutex_);
  if (ended_) return {};  // dropping it completes it
  if (peer_state_ != PeerState::kHere) {
    outbox_.Keep(std::move(operation));
    return PeerHasLeft();
  }
  outbox_.Add(std::move(operation));
  return {};
}

Status PeerMessages::Receive(const ReceiveOperation& operation) {
  MutexLock lock(&mutex_);
  if (ended_) {
    operation.Complete(ending_->cause());
    return {};
  }
  const MessageTag& tag = operation.label.tag;
  if (auto early = early_.extract(tag)) return TakeEarly(operation, early.mapped());
  const auto posted = posted_.emplace(tag, Posted{.operation = operation});
  RT_CHECK(posted.second, "a tag is used once in each direction");
  if (peer_state_ != PeerState::kHere) return PeerHasLeft();
  if (const auto request = requests_.extract(tag)) {
    return Grant(request.mapped().first, request.mapped().second, posted.first);
  }
  return {};
}

Status PeerMessages::MatchPosted(const MessageLabel& sent, uint64_t bytes,
                                 PostedMap::iterator posted) {
  const ReceiveOperation operation = posted->second.operation;
  const Status match = CheckMatch(sent, bytes, operation.label, operation.buffer.bytes.size());
  if (match.ok()) return {};
  posted_.erase(posted);
  operation.Complete(match);
  return match.Annotate(operation.Describe());
}

Status PeerMessages::Grant(const MessageLabel& sent, uint64_t bytes, PostedMap::iterator posted) {
  RT_RETURN_IF_ERROR(MatchPosted(sent, bytes, posted));
  posted->second.granted = true;
  outbox_.AddControl(FrameKind::kGrant, sent, bytes, 0);
  return {};
}

Status PeerMessages::TakeEarly(const ReceiveOperation& operation, const Early& early) {
  const Status match =
      CheckMatch(early.label, early.bytes.size(), operation.label, operation.buffer.bytes.size());
  if (match.ok()) Land(early.bytes, operation.buffer);
  operation.Complete(match);
  ReturnCredit(early.bytes.size() + kMessageCost);
  return match.Annotate(operation.Describe());
}

void PeerMessages::End(OutgoingFrame last) {
  MutexLock lock(&mutex_);
  ended_ = true;
  const Status cause = ending_->cause();
  for (const auto& [tag, posted] : posted_) posted.operation.Complete(cause);
  posted_.clear();
  if (incoming_ && !incoming_->busy) {
    if (incoming_->receive) incoming_->receive->Complete(cause);
    incoming_.reset();
  }
  early_.clear();
  requests_.clear();
  outbox_.End(std::move(last));
}

std::vector<OutgoingFrame> PeerMessages::TakeFrames(size_t bytes) {
  std::vector<OutgoingFrame> frames;
  bool checksums = true;
  {
    MutexLock lock(&mutex_);
    checksums = checksums_;
    frames = outbox_.TakeFrames(bytes);
  }
  for (OutgoingFrame& frame : frames) {
    if (frame.header.kind != FrameKind::kData) continue;
    if (IsData(frame.header.label.tag)) ++data_sent_;
    if (checksums) frame.header.payload_crc = Crc32c(frame.payload);
  }
  return frames;
}

// ---- frames of the peer -------------------------------------------------------------------------

Status PeerMessages::OnFrames(ByteCursor* bytes) {
  while (bytes->left() > 0) {
    RT_ASSIGN_OR_RETURN(const FrameHeader header, reader_.Next(bytes));
    RT_RETURN_IF_ERROR(OnFrame(header, bytes));
  }
  return {};
}

Status PeerMessages::OnFrame(const FrameHeader& header, ByteCursor* bytes) {
  if (!IsUrgent(header.label.tag)) ++arrived_;
  if (header.kind == FrameKind::kData && IsData(header.label.tag)) ++data_received_;
  if (header.kind == FrameKind::kData) return OnData(header, bytes);
  if (header.kind == FrameKind::kAbort || header.kind == FrameKind::kGiveUp) {
    return OnStop(header, bytes);
  }
  if (header.payload_bytes > 0) return Violation("a hello in the middle", header);
  MutexLock lock(&mutex_);
  if (!ended_) return OnControl(header);
  // A rank that leaves last may need to know that the others have left.
  if (header.kind == FrameKind::kGoodbye) peer_state_ = PeerState::kLeft;
  return {};
}

Status PeerMessages::OnControl(const FrameHeader& header) {
  switch (header.kind) {
    case FrameKind::kRequest:
      return OnRequest(header);
    case FrameKind::kGrant:
      if (outbox_.OnGrant(header.label.tag)) return {};
      return Violation("it grants what was not requested", header);
    case FrameKind::kCredit:
      if (outbox_.OnCredit(header.offset)) return {};
      return Violation("it returns more credit than it has given", header);
    case FrameKind::kGoodbye:
      return PeerLeft();
    default:
      return Violation("a hello in the middle", header);
  }
}

Status PeerMessages::OnRequest(const FrameHeader& header) {
  const auto posted = posted_.find(header.label.tag);
  if (posted == posted_.end()) {
    if (requests_.size() >= kMaxRequests || early_.contains(header.label.tag) ||
        !requests_.emplace(header.label.tag, std::pair(header.label, header.message_bytes))
             .second) {
      return Violation("a request too many", header);
    }
    return {};
  }
  if (posted->second.granted) return Violation("it requests twice", header);
  return Grant(header.label, header.message_bytes, posted);
}

Status PeerMessages::OnStop(const FrameHeader& header, ByteCursor* bytes) {
  RT_ASSIGN_OR_RETURN(const std::string payload, ReadControlPayload(header, bytes));
  MutexLock lock(&mutex_);
  peer_state_ = header.kind == FrameKind::kAbort ? PeerState::kStopped : PeerState::kGaveThisRankUp;
  return ParseAbort(payload);
}

Status PeerMessages::OnData(const FrameHeader& header, ByteCursor* bytes) {
  if (header.payload_bytes > bytes->left()) {
    return Violation("the frame ends before its payload", header);
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
      return Violation("a chunk that does not continue its message", header);
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
  if (!intact) return Violation("the payload does not have its checksum", header);
  return incoming.received == header.message_bytes ? Finish() : Status();
}

// The first chunk of a message.
Status PeerMessages::Begin(const FrameHeader& header) {
  const MessageTag& tag = header.label.tag;
  const auto posted = posted_.find(tag);
  const bool is_posted = posted != posted_.end();
  if (header.granted != (is_posted && posted->second.granted)) {
    return Violation(header.granted ? "it was not granted" : "it was granted, and asks credit",
                     header);
  }
  if (!header.granted) {
    if (header.message_bytes > lent_ || peers_debt_ + header.message_bytes + kMessageCost > lent_) {
      return Violation("it sends more than it has credit for", header);
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
      return Violation("a tag that it has used before", header);
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
  // Its Receive may have been posted while it arrived.
  if (const auto posted = posted_.extract(early.label.tag)) {
    return TakeEarly(posted.mapped().operation, early);
  }
  early_.emplace(early.label.tag, std::move(early));
  return {};
}

}  // namespace ringtail
