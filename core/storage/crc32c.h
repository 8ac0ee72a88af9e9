// CRC-32C (Castagnoli): detects every error burst up to 32 bits and every one- and two-bit error in
// blocks of the sizes that we write. No defence against deliberate changes.
//
//   polynomial x^32 + x^28 + x^27 + x^26 + x^25 + x^23 + ... + 1 (0x1EDC6F41), bits reflected,
//   register starts and ends inverted: Crc32c("123456789") = 0xe3069283
//
// Cost: about 8 bytes per cycle with SSE4.2 in blocks of 3 KiB and more, a third of that in shorter
// ones, a ninth without; chosen at run time.
// Thread-safety: functions without state. Sources: Castagnoli et al. 1993; RFC 3720, B.4; tables
// eight bytes at a time: Kounavis and Berry, "Novel Table Lookup-Based Algorithms for
// High-Performance CRC Generation", 2008; three lanes: Gopal et al., "Fast CRC Computation for
// iSCSI Polynomial Using CRC32 Instruction", 2011.
#ifndef RINGTAIL_CORE_STORAGE_CRC32C_H_
#define RINGTAIL_CORE_STORAGE_CRC32C_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ringtail {

// The checksum of `data`, continued from that of the preceding bytes: Crc32c(b, Crc32c(a)) is the
// checksum of a followed by b.
uint32_t Crc32c(std::span<const std::byte> data, uint32_t previous = 0);

// The spelling in files: eight lower-case hexadecimal digits. Parsing accepts nothing else, so that
// a flipped bit cannot turn one spelling of a number into another.
std::string Crc32cToHex(uint32_t crc);
std::optional<uint32_t> Crc32cFromHex(std::string_view hex);

// The two implementations. Crc32cSse42 needs a processor with SSE4.2.
namespace internal {
uint32_t Crc32cTable(std::span<const std::byte> data, uint32_t previous);
uint32_t Crc32cSse42(std::span<const std::byte> data, uint32_t previous);
bool HasSse42();
}  // namespace internal

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_CRC32C_H_
