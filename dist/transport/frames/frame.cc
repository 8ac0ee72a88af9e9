#include "dist/transport/frames/frame.h"

#include <fmt/format.h>

#include <cstring>
#include <type_traits>

#include "core/storage/crc32c.h"

namespace ringtail {
namespace {

// Bytes 'R' 'T' 'F' '1'.
constexpr uint32_t kMagic = 0x31465452;
constexpr uint8_t kGranted = 1;
constexpr size_t kHeaderCrcAt = 60;

// As the header lies in memory, on a little-endian machine; every field is naturally aligned.
struct Wire {
  uint32_t magic;
  uint8_t kind, flags;
  uint16_t number;
  uint32_t generation, payload_bytes;
  uint64_t collective;
  uint32_t step, segment;
  uint64_t check, message_bytes, offset;
  uint32_t payload_crc, header_crc;
};
static_assert(sizeof(Wire) == kFrameHeaderBytes && std::is_trivially_copyable_v<Wire>);
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

uint32_t MaxPayload(const Wire& wire) {
  switch (static_cast<FrameKind>(wire.kind)) {
    case FrameKind::kData:
      return UINT32_MAX;
    case FrameKind::kHello:
    case FrameKind::kAbort:
      return kMaxControlPayloadBytes;
    default:
      return 0;
  }
}

}  // namespace

std::array<std::byte, kFrameHeaderBytes> EncodeHeader(const FrameHeader& header) {
  Wire wire{.magic = kMagic,
            .kind = static_cast<uint8_t>(header.kind),
            .flags = header.granted ? kGranted : uint8_t{0},
            .number = header.number,
            .generation = header.generation,
            .payload_bytes = header.payload_bytes,
            .collective = header.label.tag.collective,
            .step = header.label.tag.step,
            .segment = header.label.tag.segment,
            .check = header.label.check,
            .message_bytes = header.message_bytes,
            .offset = header.offset,
            .payload_crc = header.payload_crc,
            .header_crc = 0};
  std::array<std::byte, kFrameHeaderBytes> bytes;
  std::memcpy(bytes.data(), &wire, sizeof(wire));
  wire.header_crc = Crc32c(std::span(bytes).first(kHeaderCrcAt));
  std::memcpy(bytes.data() + kHeaderCrcAt, &wire.header_crc, sizeof(wire.header_crc));
  return bytes;
}

uint32_t AnnouncedPayload(std::span<const std::byte, kFrameHeaderBytes> bytes) {
  Wire wire;
  std::memcpy(&wire, bytes.data(), sizeof(wire));
  return wire.payload_bytes;
}

StatusOr<FrameHeader> DecodeHeader(std::span<const std::byte, kFrameHeaderBytes> bytes) {
  Wire wire;
  std::memcpy(&wire, bytes.data(), sizeof(wire));
  if (wire.magic != kMagic) {
    return DataLoss(fmt::format("not a frame: it begins with {:08x}", wire.magic));
  }
  if (wire.header_crc != Crc32c(bytes.first(kHeaderCrcAt))) {
    return DataLoss("a frame's header does not have its checksum");
  }
  const bool data = wire.kind == static_cast<uint8_t>(FrameKind::kData);
  if (wire.kind == 0 || wire.kind > kLastFrameKind || wire.flags > (data ? kGranted : 0)) {
    return DataLoss(fmt::format("no frame is of kind {}, flags {}", wire.kind, wire.flags));
  }
  if (wire.payload_bytes > MaxPayload(wire)) {
    return DataLoss(fmt::format("a frame of kind {} with {} bytes", wire.kind, wire.payload_bytes));
  }
  if (data &&
      (wire.offset > wire.message_bytes || wire.payload_bytes > wire.message_bytes - wire.offset)) {
    return DataLoss(fmt::format("{} bytes at {} of a message of {} bytes", wire.payload_bytes,
                                wire.offset, wire.message_bytes));
  }
  return FrameHeader{
      .kind = static_cast<FrameKind>(wire.kind),
      .granted = wire.flags == kGranted,
      .number = wire.number,
      .generation = wire.generation,
      .payload_bytes = wire.payload_bytes,
      .label = {.tag = {.collective = wire.collective, .step = wire.step, .segment = wire.segment},
                .check = wire.check},
      .message_bytes = wire.message_bytes,
      .offset = wire.offset,
      .payload_crc = wire.payload_crc};
}

}  // namespace ringtail
