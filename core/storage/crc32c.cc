#include "core/storage/crc32c.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace ringtail {
namespace internal {
namespace {

constexpr uint32_t kReflectedPolynomial = 0x82F63B78;
constexpr size_t kStride = 8;  // bytes per round

// tables[k][b]: the contribution of byte b when k more bytes follow it in the same round.
using Tables = std::array<std::array<uint32_t, 256>, kStride>;

constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReflectedPolynomial : 0);
    }
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < kStride; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t shorter = tables[k - 1][byte];
      tables[k][byte] = (shorter >> 8) ^ tables[0][shorter & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

// The instruction has a latency of three cycles and a throughput of one, so three lanes of so many
// bytes are computed at a time, each with its own register.
constexpr size_t kLaneBytes = 1024;
constexpr size_t kLanes = 3;

// skip[i][b]: the register after kLaneBytes zeros if its byte i is b and the others are 0. (The
// register is linear in its bits.)
using SkipTables = std::array<std::array<uint32_t, 256>, sizeof(uint32_t)>;

constexpr SkipTables MakeSkipTables() {
  SkipTables skip{};
  for (size_t i = 0; i < skip.size(); ++i) {
    for (uint32_t bit = 0; bit < 8; ++bit) {
      uint32_t crc = uint32_t{1} << (8 * i + bit);
      for (size_t zeros = 0; zeros < kLaneBytes; ++zeros) {
        crc = (crc >> 8) ^ kTables[0][crc & 0xFF];
      }
      for (uint32_t byte = 0; byte < 256; ++byte) {
        if ((byte >> bit & 1) != 0) skip[i][byte] ^= crc;
      }
    }
  }
  return skip;
}

constexpr SkipTables kSkip = MakeSkipTables();

// The register after kLaneBytes zeros.
uint32_t SkipLane(uint64_t crc) {
  uint32_t skipped = 0;
  for (size_t i = 0; i < kSkip.size(); ++i) skipped ^= kSkip[i][(crc >> (8 * i)) & 0xFF];
  return skipped;
}

uint64_t LoadWord(const std::byte* from) {
  uint64_t word = 0;
  std::memcpy(&word, from, sizeof(word));  // little-endian, as every processor we run on
  return word;
}

}  // namespace

uint32_t Crc32cTable(std::span<const std::byte> data, uint32_t previous) {
  uint32_t crc = ~previous;
  while (data.size() >= kStride) {
    const uint64_t word = LoadWord(data.data()) ^ crc;
    crc = 0;
    for (size_t i = 0; i < kStride; ++i) {
      crc ^= kTables[kStride - 1 - i][(word >> (8 * i)) & 0xFF];
    }
    data = data.subspan(kStride);
  }
  for (const std::byte byte : data) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<uint32_t>(byte)) & 0xFF];
  }
  return ~crc;
}

#if defined(__x86_64__)

bool HasSse42() { return __builtin_cpu_supports("sse4.2") != 0; }

__attribute__((target("sse4.2"))) uint32_t Crc32cSse42(std::span<const std::byte> data,
                                                       uint32_t previous) {
  uint64_t crc = static_cast<uint32_t>(~previous);
  while (data.size() >= kLanes * kLaneBytes) {
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < kLaneBytes; i += kStride) {
      crc = _mm_crc32_u64(crc, LoadWord(&data[i]));
      second = _mm_crc32_u64(second, LoadWord(&data[kLaneBytes + i]));
      third = _mm_crc32_u64(third, LoadWord(&data[2 * kLaneBytes + i]));
    }
    crc = SkipLane(SkipLane(crc) ^ second) ^ third;
    data = data.subspan(kLanes * kLaneBytes);
  }
  while (data.size() >= kStride) {
    crc = _mm_crc32_u64(crc, LoadWord(data.data()));
    data = data.subspan(kStride);
  }
  auto tail = static_cast<uint32_t>(crc);
  for (const std::byte byte : data) tail = _mm_crc32_u8(tail, static_cast<uint8_t>(byte));
  return ~tail;
}

#else

bool HasSse42() { return false; }

uint32_t Crc32cSse42(std::span<const std::byte> data, uint32_t previous) {
  return Crc32cTable(data, previous);
}

#endif

}  // namespace internal

uint32_t Crc32c(std::span<const std::byte> data, uint32_t previous) {
  static const bool has_sse42 = internal::HasSse42();
  return has_sse42 ? internal::Crc32cSse42(data, previous) : internal::Crc32cTable(data, previous);
}

std::string Crc32cToHex(uint32_t crc) { return fmt::format("{:08x}", crc); }

std::optional<uint32_t> Crc32cFromHex(std::string_view hex) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (hex.size() != 2 * sizeof(uint32_t)) return std::nullopt;
  uint32_t crc = 0;
  for (const char digit : hex) {
    const size_t value = kDigits.find(digit);
    if (value == std::string_view::npos) return std::nullopt;
    crc = crc << 4 | static_cast<uint32_t>(value);
  }
  return crc;
}

}  // namespace ringtail
