#include "dist/transport/frames/frame.h"

#include <fmt/format.h>

#include "core/storage/crc32c.h"
#include "dist/wire_record.h"

namespace ringtail {
namespace {

// Bytes 'R' 'T' 'F' '1'.
constexpr uint32_t kMagic = 0x31465452;
constexpr uint8_t kGranted = 1;
constexpr size_t kPayloadBytesAt = 12, kHeaderCrcAt = 60;

uint32_t MaxPayload(FrameKind kind) {
  switch (kind) {
    case FrameKind::kData:
      return UINT32_MAX;
    case FrameKind::kHello:
    case FrameKind::kAbort:
    case FrameKind::kGiveUp:
      return kMaxControlPayloadBytes;
    default:
      return 0;
  }
}

}  // namespace

std::array<std::byte, kFrameHeaderBytes> EncodeHeader(const FrameHeader& header) {
  std::array<std::byte, kFrameHeaderBytes> bytes;
  WireWriter record(bytes);
  record.Put(kMagic)
      .Put(static_cast<uint8_t>(header.kind))
      .Put(header.granted ? kGranted : uint8_t{0})
      .Put(header.number)
      .Put(header.generation)
      .Put(header.payload_bytes)
      .Put(header.label.tag.collective)
      .Put(header.label.tag.step)
      .Put(header.label.tag.segment)
      .Put(header.label.check)
      .Put(header.message_bytes)
      .Put(header.offset)
      .Put(header.payload_crc);
  record.Put(Crc32c(std::span(bytes).first(kHeaderCrcAt)));
  return bytes;
}

uint32_t AnnouncedPayload(std::span<const std::byte, kFrameHeaderBytes> bytes) {
  return WireReader(bytes.subspan(kPayloadBytesAt)).Get<uint32_t>();
}

StatusOr<FrameHeader> DecodeHeader(std::span<const std::byte, kFrameHeaderBytes> bytes) {
  WireReader record(bytes);
  const auto magic = record.Get<uint32_t>();
  if (magic != kMagic) return DataLoss(fmt::format("not a frame: it begins with {:08x}", magic));
  if (WireReader(bytes.subspan(kHeaderCrcAt)).Get<uint32_t>() !=
      Crc32c(bytes.first(kHeaderCrcAt))) {
    return DataLoss("a frame's header does not have its checksum");
  }
  const auto kind = record.Get<uint8_t>(), flags = record.Get<uint8_t>();
  const bool data = kind == static_cast<uint8_t>(FrameKind::kData);
  if (kind == 0 || kind > kLastFrameKind || flags > (data ? kGranted : 0)) {
    return DataLoss(fmt::format("no frame is of kind {}, flags {}", kind, flags));
  }
  FrameHeader header{.kind = static_cast<FrameKind>(kind), .granted = flags == kGranted};
  header.number = record.Get<uint16_t>();
  header.generation = record.Get<uint32_t>();
  header.payload_bytes = record.Get<uint32_t>();
  header.label.tag.collective = record.Get<uint64_t>();
  header.label.tag.step = record.Get<uint32_t>();
  header.label.tag.segment = record.Get<uint32_t>();
  header.label.check = record.Get<uint64_t>();
  header.message_bytes = record.Get<uint64_t>();
  header.offset = record.Get<uint64_t>();
  header.payload_crc = record.Get<uint32_t>();
  if (header.payload_bytes > MaxPayload(header.kind)) {
    return DataLoss(fmt::format("a frame of kind {} with {} bytes", kind, header.payload_bytes));
  }
  if (data && (header.offset > header.message_bytes ||
               header.payload_bytes > header.message_bytes - header.offset)) {
    return DataLoss(fmt::format("{} bytes at {} of a message of {} bytes", header.payload_bytes,
                                header.offset, header.message_bytes));
  }
  return header;
}

}  // namespace ringtail
