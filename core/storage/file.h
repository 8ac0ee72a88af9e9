// Reads and writes files, with a Status for every error; every message names the file.
//
// Writing is durable: when a function below returns OK, its effect survives a power cut, and a
// crash at any earlier instant leaves the old content. The order of the steps ensures it:
//
//   write .<name>.tmp-<pid>  ->  fsync it  ->  close  ->  rename to <name>  ->  fsync the folder
//
// Thread-safety: functions without state, but one writer per path at a time (two would share the
// temporary name). Source: Pillai et al., "All File Systems Are Not Created Equal", OSDI'14.
#ifndef RINGTAIL_CORE_STORAGE_FILE_H_
#define RINGTAIL_CORE_STORAGE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/storage/file_descriptor.h"

namespace ringtail {

// Reads a whole regular file (including those of /proc, whose reported size is 0).
// ResourceExhausted if it is larger than `max_bytes`; uses memory in proportion to the actual
// content.
StatusOr<std::vector<std::byte>> ReadFileBytes(const std::string& path, int64_t max_bytes);
StatusOr<std::string> ReadFileText(const std::string& path, int64_t max_bytes);

// Writes `parts` one after the other so that after a crash at any instant `path` holds either the
// old content or all of the new one. On an error the temporary file is removed and `path` is
// unchanged; only if the last step fails, the fsync of the folder, `path` already has the new
// content, but a power cut may undo that.
// A link stays, and its target is replaced. Pipes, devices and open descriptors such as
// /dev/stdout, which a rename would destroy, are opened and written to:
// core/storage/output_target.h.
Status WriteFileAtomic(const std::string& path, std::span<const std::span<const std::byte>> parts);
Status WriteFileAtomic(const std::string& path, std::string_view text);

// The same for content that does not fit into memory: `write` writes it to the temporary file,
// front to back. Its error is returned, and `path` is unchanged.
using FileWriter = std::function<Status(const FileDescriptor& file)>;
Status WriteFileAtomic(const std::string& path, const FileWriter& write);

// Makes `path` a second name of the file `existing`, replacing `path` as WriteFileAtomic does.
// Copies only on file systems without hard links.
Status LinkFileAtomic(const std::string& existing, const std::string& path);

// Creates `path` and all missing folders above it, durably. A folder that exists is no error;
// InvalidArgument if something else has its name.
Status MakeDirectories(const std::string& path);

// The names in a folder, sorted, without "." and "..".
StatusOr<std::vector<std::string>> ListFolder(const std::string& folder);

// The temporary name of `path` while it is written: <folder>/.<name>.tmp-<pid>.
std::string TemporaryPath(const std::string& path);

// Removes the temporary files of killed writers from `folder`. The caller must be the only process
// that writes there (core/storage/run_lock.h), and must not be writing at that moment.
Status RemoveTemporaryFiles(const std::string& folder);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_FILE_H_
