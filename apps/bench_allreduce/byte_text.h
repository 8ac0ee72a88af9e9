// Numbers of bytes as people write them: "1KiB", "25MB", "1.2GB", "4096".
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_BENCH_ALLREDUCE_BYTE_TEXT_H_
#define RINGTAIL_APPS_BENCH_ALLREDUCE_BYTE_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"

namespace ringtail {

// KiB, MiB and GiB are powers of 1024; kB (or KB), MB and GB powers of 1000; B or nothing is one
// byte. What is not a whole number of float32 is rounded up to one. From 4 bytes to 1 TiB.
StatusOr<int64_t> ParseBytes(std::string_view text);

// "25 MiB", "1.2 GB", "1000 B": in the largest unit of either kind that takes three digits or
// fewer to say it exactly; else in bytes.
std::string FormatBytes(int64_t bytes);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_ALLREDUCE_BYTE_TEXT_H_
