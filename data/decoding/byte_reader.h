// Reads integers from untrusted bytes. Reading past the end gives no value and accesses no memory.
// Thread-safety: pure functions.
#ifndef RINGTAIL_DATA_DECODING_BYTE_READER_H_
#define RINGTAIL_DATA_DECODING_BYTE_READER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace ringtail {

enum class ByteOrder { kLittleEndian, kBigEndian };

// The unsigned integer of `size` (1 .. 4) bytes at `offset`.
inline std::optional<uint32_t> ReadUint(std::span<const std::byte> bytes, size_t offset,
                                        size_t size, ByteOrder order) {
  if (offset > bytes.size() || bytes.size() - offset < size) return std::nullopt;
  uint32_t value = 0;
  for (size_t i = 0; i < size; ++i) {
    const size_t position = order == ByteOrder::kBigEndian ? i : size - 1 - i;
    value = value << 8 | static_cast<uint32_t>(bytes[offset + position]);
  }
  return value;
}

// Whether the bytes at `offset` equal `text` (which may contain zero bytes).
inline bool HasTextAt(std::span<const std::byte> bytes, size_t offset, std::string_view text) {
  return offset <= bytes.size() && bytes.size() - offset >= text.size() &&
         std::memcmp(bytes.data() + offset, text.data(), text.size()) == 0;
}

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_BYTE_READER_H_
