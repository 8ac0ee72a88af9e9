// The kind of a directory entry, in words for messages: "a file", "a named pipe".
// Thread-safety: functions without state.
#ifndef RINGTAIL_CORE_STORAGE_FILE_KIND_H_
#define RINGTAIL_CORE_STORAGE_FILE_KIND_H_

#include <sys/stat.h>

#include <string>

namespace ringtail {

inline std::string DescribeFileKind(mode_t mode) {
  if (S_ISREG(mode)) return "a file";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISLNK(mode)) return "a link";
  return "a device";
}

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_FILE_KIND_H_
