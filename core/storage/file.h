// Files, with a Status for everything that can go wrong; every message names the file.
//
// Writing is durable: when a function below returns OK, its effect survives a power cut, and a
// crash at any instant before leaves what was there. The order is what makes it so:
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

// Reads a whole regular file (those of /proc, too, which claim to be empty). ResourceExhausted if
// it is larger than `max_bytes`; memory in proportion to what the file really holds.
StatusOr<std::vector<std::byte>> ReadFileBytes(const std::string& path, int64_t max_bytes);
StatusOr<std::string> ReadFileText(const std::string& path, int64_t max_bytes);

// Writes `parts` one behind the other so that after a crash at any instant `path` holds either what
// it held before or all of the new content. On an error the temporary file is removed and `path` is
// as it was; only if the very last step fails, the fsync of the folder, `path` has the new content
// already, but a power cut may undo that.
// A link stays, and its target is replaced. What a rename would destroy (a pipe, a device, an open
// descriptor such as /dev/stdout) is opened and written to instead: core/storage/output_target.h.
Status WriteFileAtomic(const std::string& path, std::span<const std::span<const std::byte>> parts);
Status WriteFileAtomic(const std::string& path, std::string_view text);

// The same for what does not fit into memory: `write` writes it to the temporary file, front to
// back. Its error ends the writing and is returned.
using FileWriter = std::function<Status(const FileDescriptor& file)>;
Status WriteFileAtomic(const std::string& path, const FileWriter& write);

// Makes `path` another name of the file `existing`, replacing `path` as WriteFileAtomic does. No
// byte is copied, unless the file system has no hard links.
Status LinkFileAtomic(const std::string& existing, const std::string& path);

// Makes `path` and all folders above it that are missing, durably.
// A folder that exists is no error; InvalidArgument if something else has its name.
Status MakeDirectories(const std::string& path);

// The names in a folder, sorted, without "." and "..".
StatusOr<std::vector<std::string>> ListFolder(const std::string& folder);

// The name under which `path` is written before it is renamed: <folder>/.<name>.tmp-<pid>.
std::string TemporaryPath(const std::string& path);

// Removes what writers that died left in `folder` (.<name>.tmp-<pid>). Whoever calls this must be
// the only one that writes there (core/storage/run_lock.h) and not be writing just now.
Status RemoveTemporaryFiles(const std::string& folder);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_FILE_H_
