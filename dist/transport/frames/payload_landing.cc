#include "dist/transport/frames/payload_landing.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/storage/crc32c.h"

namespace ringtail {
namespace {

// A multiple of what the checksum takes at a time (core/storage/crc32c.h).
constexpr size_t kBlockBytes = 12 << 10;
// Alignment of the largest element.
constexpr size_t kElementAlignment = 8;
static_assert(kBlockBytes % kChunkAlignment == 0);

}  // namespace

uint32_t LandPayload(ByteCursor* bytes, const ReceiveBuffer& to, bool checksum) {
  alignas(kChunkAlignment) std::array<std::byte, kBlockBytes> block;
  uint32_t crc = 0;
  for (size_t at = 0; at < to.bytes.size(); at += kBlockBytes) {
    const std::span<std::byte> memory =
        to.bytes.subspan(at, std::min(kBlockBytes, to.bytes.size() - at));
    std::span<const std::byte> message;
    if (to.combine != nullptr) message = bytes->ReadInPlace(memory.size(), kElementAlignment);
    if (message.empty()) {
      const std::span<std::byte> copy =
          to.combine != nullptr ? std::span(block).first(memory.size()) : memory;
      bytes->Read(copy);
      message = copy;
    }
    if (checksum) crc = Crc32c(message, crc);
    if (to.combine != nullptr) to.combine(memory.data(), message.data(), message.size());
  }
  return crc;
}

void Land(std::span<const std::byte> message, const ReceiveBuffer& to) {
  if (to.combine != nullptr) {
    to.combine(to.bytes.data(), message.data(), message.size());
  } else if (!message.empty()) {
    std::memcpy(to.bytes.data(), message.data(), message.size());
  }
}

}  // namespace ringtail
