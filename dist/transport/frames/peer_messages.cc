#include "dist/transport/frames/peer_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/storage/crc32c.h"
#include "dist/transport/frames/payload_landing.h"

namespace ringtail {
namespace {

// Control frames in one write; the others come with the next.
constexpr size_t kMaxControlFrames = 256;

}  // namespace

OutgoingFrame ControlFrame(FrameKind kind, uint32_t generation, std::string payload) {
  const FrameHeader header = {.kind = kind,
                              .generation = generation,
                              .payload_bytes = static_cast<uint32_t>(payload.size()),
                              .payload_crc = Crc32c(std::as_bytes(std::span(payload)))};
  return {.header = header, .control_payload = std::move(payload)};
}

PeerMessages::PeerMessages(int peer, uint32_t generation, std::shared_ptr<Ending> ending)
    : peer_(peer), generation_(generation), ending_(std::move(ending)) {}

void PeerMessages::SkipChecksums() {
  MutexLock lock(&mutex_);
  checksums_ = false;
}

void PeerMessages::LendForNetwork() {
  MutexLock lock(&mutex_);
  lent_ = credit_ = kNetworkCreditBytes;
}

Traffic PeerMessages::traffic() const {
  return {.arrived = arrived_, .sent = data_sent_, .received = data_received_};
}

PeerMessages::PeerState PeerMessages::peer_state() const {
  MutexLock lock(&mutex_);
  return peer_state_;
}

// OK if it has stopped: whoever read its kAbort is about to end the transport with the peer's own
// cause, which must not lose against this one.
Status PeerMessages::PeerHasLeft() const {
  if (peer_state_ == PeerState::kStopped) return {};
  return {StatusCode::kUnavailable, fmt::format("rank {} has left the world", peer_)};
}

void PeerMessages::QueueControl(FrameKind kind, const MessageLabel& label, uint64_t message_bytes,
                                uint64_t offset) {
  control_.push_back({.header = {.kind = kind,
                                 .generation = generation_,
                                 .label = label,
                                 .message_bytes = message_bytes,
                                 .offset = offset}});
}

void PeerMessages::ReturnCredit(uint64_t bytes) {
  to_return_ += bytes;
  if (to_return_ < lent_ / 4) return;
  peers_debt_ -= to_return_;
  QueueControl(FrameKind::kCredit, {}, 0, std::exchange(to_return_, 0));
}

Status PeerMessages::Send(std::shared_ptr<SendOperation> operation) {
  MutexLock lock(&mutex_);
  if (ended_) return {};  // dropping it completes it
  const MessageLabel label = operation->label;
  const uint64_t bytes = operation->bytes.size(), cost = bytes + kMessageCost;
  if (peer_state_ != PeerState::kHere) {
    ready_.push_back({.operation = std::move(operation)});  // completed by End
    return PeerHasLeft();
  }
  if (cost <= credit_) {
    credit_ -= cost;
    auto before = ready_.end();
    if (IsUrgent(label.tag)) {  // the message that is being written goes on without a gap
      before = ready_.begin();
      if (before != ready_.end() && before->written > 0) ++before;
    }
    ready_.insert(before, {.operation = std::move(operation)});
    return {};
  }
  const bool added = requested_.emplace(label.tag, std::move(operation)).second;
  RT_CHECK(added, "a tag is used once in each direction");
  QueueControl(FrameKind::kRequest, label, bytes, 0);
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
  QueueControl(FrameKind::kGrant, sent, bytes, 0);
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
  ready_.clear();
  requested_.clear();
  early_.clear();
  requests_.clear();
  control_.clear();
  control_.push_back(std::move(last));
}

std::vector<OutgoingFrame> PeerMessages::TakeFrames(size_t bytes) {
  std::vector<OutgoingFrame> frames;
  bool checksums = true;
  {
    MutexLock lock(&mutex_);
    checksums = checksums_;
    while (!control_.empty() && frames.size() < kMaxControlFrames) {
      frames.push_back(std::move(control_.front()));
      control_.pop_front();
    }
    for (size_t left = bytes; left > 0 && !ready_.empty();) {
      Sending& sending = ready_.front();
      const std::span<const std::byte> memory = sending.operation->bytes;
      size_t chunk = memory.size() - sending.written;
      if (chunk > left) chunk = left / kChunkAlignment * kChunkAlignment;
      if (chunk == 0 && !memory.empty()) break;
      frames.push_back({.header = {.kind = FrameKind::kData,
                                   .granted = sending.granted,
                                   .generation = generation_,
                                   .payload_bytes = static_cast<uint32_t>(chunk),
                                   .label = sending.operation->label,
                                   .message_bytes = memory.size(),
                                   .offset = sending.written},
                        .payload = memory.subspan(sending.written, chunk),
                        .memory = sending.operation});
      sending.written += chunk;
      if (IsData(sending.operation->label.tag)) ++data_sent_;
      left -= std::min(left, chunk + kFrameHeaderBytes);
      if (sending.written == memory.size()) ready_.pop_front();
    }
    for (OutgoingFrame& frame : frames) frame.header.number = next_out_++;
  }
  for (OutgoingFrame& frame : frames) {
    if (checksums && frame.header.kind == FrameKind::kData) {
      frame.header.payload_crc = Crc32c(frame.payload);
    }
  }
  return frames;
}

}  // namespace ringtail
