// Files, with a Status for everything that can go wrong. Thread-safety: functions without state.
#ifndef RINGTAIL_CORE_FILE_H_
#define RINGTAIL_CORE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"

namespace ringtail {

// Reads a whole regular file; ResourceExhausted if it is larger than `max_bytes` (never allocates more).
StatusOr<std::vector<std::byte>> ReadFileBytes(const std::string& path, int64_t max_bytes);
StatusOr<std::string> ReadFileText(const std::string& path, int64_t max_bytes);

// Writes `parts` one behind the other so that after a crash at any instant `path` holds either what it
// held before or all of the new content: temporary file in the same folder, fsync, rename, fsync of the
// folder. On an error the temporary file is removed and `path` is as it was.
Status WriteFileAtomic(const std::string& path, std::span<const std::span<const std::byte>> parts);
Status WriteFileAtomic(const std::string& path, std::string_view text);

Status MakeDirectories(const std::string& path);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_FILE_H_
