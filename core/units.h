// Factors between units, for numbers that people write and read: `kMsPerSecond * seconds`.
// Prefixes are those of the SI; "Mib" is 2^20 bytes.
#ifndef RINGTAIL_CORE_UNITS_H_
#define RINGTAIL_CORE_UNITS_H_

namespace ringtail {

inline constexpr double kMsPerSecond = 1e3, kSecondsPerMs = 1e-3;
inline constexpr double kMicro = 1e-6, kKilo = 1e3, kMega = 1e6, kGiga = 1e9;
inline constexpr double kPercent = 100;
inline constexpr double kBitsPerByte = 8, kBytesPerMib = 1 << 20;

}  // namespace ringtail

#endif  // RINGTAIL_CORE_UNITS_H_
