#include "core/disk_room.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "core/file.h"
#include "core/file_descriptor.h"

namespace ringtail {
namespace {

constexpr double kMebi = 1 << 20;

// Bytes that are free for us, if the file system says.
std::optional<int64_t> FreeBytes(const std::string& folder) {
  struct statvfs info = {};
  if (statvfs(folder.c_str(), &info) != 0) return std::nullopt;
  return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
}

// 0, or the error number.
int Allocate(const FileDescriptor& file, const std::string& folder, int64_t bytes) {
  int error = 0;
  do {
    error = fallocate(file.number(), 0, 0, bytes) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (error != EOPNOTSUPP && error != ENOSYS && error != EINVAL) return error;
  const std::optional<int64_t> free = FreeBytes(folder);
  return free && *free < bytes ? ENOSPC : 0;
}

Status TryAllocation(const std::string& path, const std::string& folder, int64_t bytes) {
  RT_ASSIGN_OR_RETURN(const FileDescriptor file,
                      FileDescriptor::Open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW));
  const int error = Allocate(file, folder, bytes);
  return error == 0 ? OkStatus() : ErrnoStatus(error, "cannot allocate it");
}

}  // namespace

Status CheckDiskRoom(const std::string& folder, int64_t bytes) {
  const std::string path = TemporaryPath(folder + "/room");
  const std::optional<int64_t> free = FreeBytes(folder);
  const Status status = TryAllocation(path, folder, bytes);
  unlink(path.c_str());
  return status.Annotate(fmt::format(
      "'{}' does not take a file of {:.1f} MiB ({})", folder, static_cast<double>(bytes) / kMebi,
      free ? fmt::format("{:.1f} MiB are free", static_cast<double>(*free) / kMebi)
           : "how much is free is not known"));
}

}  // namespace ringtail
