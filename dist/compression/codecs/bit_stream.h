// Numbers of a few bits each, one after the other: bit i of the stream is bit i % 8 of byte i / 8.
//
//   Append(5, 3)  Append(1, 2)     101, 01 -> 000 01 101     in the order of the byte's digits
//
// Thread-safety: one thread at a time. Cost: a few operations per number.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_BIT_STREAM_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_BIT_STREAM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/check.h"

namespace ringtail {

// Writes into bytes that are zero.
class BitWriter {
 public:
  explicit BitWriter(std::span<std::byte> to) : to_(to) {}

  // The lower `bits` (at most 32) of `value`, which has no others.
  void Append(uint32_t value, int bits) {
    RT_CHECK(end_ + bits <= 8 * std::ssize(to_), "numbers fit their bytes");
    for (uint64_t rest = uint64_t{value} << end_ % 8, at = end_ / 8; rest != 0; rest >>= 8, ++at) {
      to_[at] |= static_cast<std::byte>(rest & 0xff);
    }
    end_ += bits;
  }

 private:
  std::span<std::byte> to_;
  int64_t end_ = 0;  // in bits
};

class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> from) : from_(from) {}

  // bits: at most 32.
  uint32_t Take(int bits) {
    RT_CHECK(next_ + bits <= 8 * std::ssize(from_), "numbers fit their bytes");
    if (bits == 0) return 0;
    uint64_t word = 0;
    const int64_t first = next_ / 8, last = (next_ + bits - 1) / 8;
    for (int64_t at = last; at >= first; --at)
      word = word << 8 | std::to_integer<uint64_t>(from_[at]);
    word >>= next_ % 8;
    next_ += bits;
    return static_cast<uint32_t>(word & ((uint64_t{1} << bits) - 1));
  }

 private:
  std::span<const std::byte> from_;
  int64_t next_ = 0;  // in bits
};

// Whether all bits from `begin` on, which is at most their number, are zero.
inline bool ClearFrom(std::span<const std::byte> bytes, int64_t begin) {
  const std::span<const std::byte> rest = bytes.subspan(static_cast<size_t>(begin / 8));
  if (rest.empty()) return true;
  return (rest[0] >> begin % 8) == std::byte{0} &&
         std::ranges::all_of(rest.subspan(1), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_BIT_STREAM_H_
