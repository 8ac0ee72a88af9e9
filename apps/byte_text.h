// Numbers of bytes in text: "1KiB", "25MB", "1.2GB", "4096".
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_BYTE_TEXT_H_
#define RINGTAIL_APPS_BYTE_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"

namespace ringtail {

// KiB, MiB and GiB are powers of 1024; kB (or KB), MB and GB powers of 1000; B or no unit is one
// byte. Rounds up to a multiple of 4 bytes (float32). From 4 bytes to 1 TiB.
StatusOr<int64_t> ParseBytes(std::string_view text);

// "25 MiB", "1.2 GB", "1000 B": in the largest unit in which at most three digits are exact, else
// in bytes.
std::string FormatBytes(int64_t bytes);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BYTE_TEXT_H_
