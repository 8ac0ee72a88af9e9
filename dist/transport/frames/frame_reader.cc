#include "dist/transport/frames/frame_reader.h"

#include <fmt/format.h>

#include <array>

namespace ringtail {

Status ProtocolError(int peer, std::string_view what, const FrameHeader& header) {
  const MessageTag& tag = header.label.tag;
  return DataLoss(fmt::format(
      "rank {} does not keep to the protocol: {} (frame of kind {}, collective {}, step {}, "
      "segment {}, {} bytes at {} of {})",
      peer, what, static_cast<int>(header.kind), tag.collective, tag.step, tag.segment,
      header.payload_bytes, header.offset, header.message_bytes));
}

StatusOr<FrameHeader> FrameReader::Next(ByteCursor* bytes) {
  std::array<std::byte, kFrameHeaderBytes> encoded;
  if (!bytes->Read(encoded)) return DataLoss(fmt::format("rank {} sent half a frame", peer_));
  StatusOr<FrameHeader> header = DecodeHeader(encoded);
  if (!header.ok()) return header.status().Annotate(fmt::format("from rank {}", peer_));
  if (header->generation != generation_) {
    return FailedPrecondition(fmt::format("rank {} is of generation {} of this job, not {}", peer_,
                                          header->generation, generation_));
  }
  // A rank's last word counts wherever it stands: frames that it had numbered before may never have
  // been written.
  if (header->kind == FrameKind::kAbort || header->kind == FrameKind::kGiveUp ||
      header->kind == FrameKind::kGoodbye) {
    return header;
  }
  const uint16_t due = next_number_++;
  if (header->number == due) return header;
  return ProtocolError(peer_,
                       fmt::format("frame {} comes where frame {} is due: some were lost, doubled, "
                                   "or have changed places",
                                   header->number, due),
                       *header);
}

}  // namespace ringtail
