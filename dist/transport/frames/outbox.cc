#include "dist/transport/frames/outbox.h"

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

void Outbox::Add(std::shared_ptr<SendOperation> operation) {
  const MessageLabel label = operation->label;
  const uint64_t bytes = operation->bytes.size(), cost = bytes + kMessageCost;
  if (cost <= credit_) {
    credit_ -= cost;
    auto before = ready_.end();
    if (IsUrgent(label.tag)) {  // the message that is being written continues without a gap
      before = ready_.begin();
      if (before != ready_.end() && before->written > 0) ++before;
    }
    ready_.insert(before, {.operation = std::move(operation)});
    return;
  }
  const bool added = requested_.emplace(label.tag, std::move(operation)).second;
  RT_CHECK(added, "a tag is used once in each direction");
  AddControl(FrameKind::kRequest, label, bytes, 0);
}

void Outbox::Keep(std::shared_ptr<SendOperation> operation) {
  ready_.push_back({.operation = std::move(operation)});
}

void Outbox::AddControl(FrameKind kind, const MessageLabel& label, uint64_t message_bytes,
                        uint64_t offset) {
  control_.push_back({.header = {.kind = kind,
                                 .generation = generation_,
                                 .label = label,
                                 .message_bytes = message_bytes,
                                 .offset = offset}});
}

bool Outbox::OnGrant(const MessageTag& tag) {
  auto operation = requested_.extract(tag);
  if (!operation) return false;
  ready_.push_back({.operation = std::move(operation.mapped()), .granted = true});
  return true;
}

bool Outbox::OnCredit(uint64_t bytes) {
  if (bytes > borrowed_ - credit_) return false;
  credit_ += bytes;
  return true;
}

void Outbox::End(OutgoingFrame last) {
  ready_.clear();
  requested_.clear();
  control_.clear();
  control_.push_back(std::move(last));
}

std::vector<OutgoingFrame> Outbox::TakeFrames(size_t bytes) {
  std::vector<OutgoingFrame> frames;
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
    left -= std::min(left, chunk + kFrameHeaderBytes);
    if (sending.written == memory.size()) ready_.pop_front();
  }
  for (OutgoingFrame& frame : frames) frame.header.number = next_number_++;
  return frames;
}

}  // namespace ringtail
