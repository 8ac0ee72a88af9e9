// The target of an output path: a file that may be replaced, or something that can only be written
// to, because a rename would put a file in its place (a pipe, a device, a socket, an open
// descriptor such as /dev/stdout).
//
// Links are followed as open(2) follows them: a link to a file stays a link, and its target is
// replaced. Thread-safety: functions without state. Errors: a folder, a loop of links, those
// of the system; each names the path. Cost: one lstat, more for links.
#ifndef RINGTAIL_CORE_STORAGE_OUTPUT_TARGET_H_
#define RINGTAIL_CORE_STORAGE_OUTPUT_TARGET_H_

#include <optional>
#include <string>

#include "core/status.h"
#include "core/storage/file_descriptor.h"

namespace ringtail {

struct OutputTarget {
  std::string path;                      // a missing or regular file; no link
  std::optional<FileDescriptor> stream;  // if set, write here and replace nothing
};

// Opening a pipe waits for its reader, as in every other program.
StatusOr<OutputTarget> FindOutputTarget(const std::string& path);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_OUTPUT_TARGET_H_
