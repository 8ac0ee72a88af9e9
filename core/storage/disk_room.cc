#include "core/storage/disk_room.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "core/storage/file.h"
#include "core/storage/file_descriptor.h"

namespace ringtail {
namespace {

constexpr double kMebi = 1 << 20;

// Bytes that we may use, if the file system tells.
std::optional<int64_t> FreeBytes(const std::string& folder) {
  struct statvfs info = {};
  if (statvfs(folder.c_str(), &info) != 0) return std::nullopt;
  return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
}

// Temporary files that take up space during the lifetime of the object.
class Files {
 public:
  explicit Files(std::string folder) : folder_(std::move(folder)), free_(FreeBytes(folder_)) {}
  ~Files() {
    for (const std::string& path : paths_) unlink(path.c_str());
  }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  std::optional<int64_t> free_before() const { return free_; }

  Status Add(int64_t bytes) {
    paths_.push_back(TemporaryPath(fmt::format("{}/room-{}", folder_, paths_.size())));
    RT_ASSIGN_OR_RETURN(
        const FileDescriptor file,
        FileDescriptor::Open(paths_.back(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW));
    const int error = Allocate(file, bytes);
    return error == 0 ? OkStatus() : ErrnoStatus(error, "cannot allocate it");
  }

 private:
  // Returns 0 or an errno value.
  int Allocate(const FileDescriptor& file, int64_t bytes) {
    int error = 0;
    do {
      error = fallocate(file.number(), 0, 0, bytes) == 0 ? 0 : errno;
    } while (error == EINTR);
    if (error != EOPNOTSUPP && error != ENOSYS && error != EINVAL) return error;
    not_allocated_ += bytes;
    return free_ && *free_ < not_allocated_ ? ENOSPC : 0;
  }

  const std::string folder_;
  const std::optional<int64_t> free_;
  int64_t not_allocated_ = 0;  // where the file system cannot allocate
  std::vector<std::string> paths_;
};

}  // namespace

Status CheckDiskRoom(const std::string& folder, std::span<const int64_t> files) {
  Files made(folder);
  Status status;
  int64_t bytes = 0;
  for (const int64_t file : files) {
    bytes += file;
    if (status.ok()) status = made.Add(file);
  }
  const bool one = files.size() == 1;
  return status.Annotate(fmt::format(
      "'{}' does not take {} of {:.1f} MiB{} ({})", folder,
      one ? "a file" : fmt::format("{} files", files.size()), static_cast<double>(bytes) / kMebi,
      one ? "" : " together",
      made.free_before()
          ? fmt::format("{:.1f} MiB are free", static_cast<double>(*made.free_before()) / kMebi)
          : "how much is free is not known"));
}

}  // namespace ringtail
