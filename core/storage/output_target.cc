#include "core/storage/output_target.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>

namespace ringtail {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // Linux's limit

// The number of an open descriptor of this process if `path` is its name below /proc. Opening the
// link's target would start at the file's beginning; only a duplicate shares the position.
std::optional<int> NumberOfDescriptor(const std::string& path) {
  std::error_code error;
  const fs::path folder = fs::canonical(fs::path(path).parent_path(), error);
  if (error || folder != "/proc/" + std::to_string(getpid()) + "/fd") return std::nullopt;
  const std::string name = fs::path(path).filename().string();
  int number = -1;
  const char* end = name.data() + name.size();
  const auto [stop, failed] = std::from_chars(name.data(), end, number);
  if (failed != std::errc() || stop != end) return std::nullopt;
  return number;
}

StatusOr<OutputTarget> Stream(StatusOr<FileDescriptor> file) {
  RT_RETURN_IF_ERROR(Status(file.status()));
  OutputTarget target;
  target.stream.emplace(*std::move(file));
  return target;
}

StatusOr<OutputTarget> TargetOfKind(const std::string& path, mode_t mode) {
  if (S_ISREG(mode)) return OutputTarget{.path = path, .stream = std::nullopt};
  if (S_ISDIR(mode)) {
    return InvalidArgument("'" + path + "' is a folder; give the name of a file");
  }
  return Stream(FileDescriptor::Open(path, O_WRONLY | O_NOCTTY));
}

}  // namespace

StatusOr<OutputTarget> FindOutputTarget(const std::string& path) {
  std::string place = path;
  for (int links = 0; links <= kMaxLinks; ++links) {
    struct stat info = {};
    if (lstat(place.c_str(), &info) != 0) {
      if (errno == ENOENT) return OutputTarget{.path = place, .stream = std::nullopt};
      return ErrnoStatus(errno, "cannot examine '" + place + "'");
    }
    if (!S_ISLNK(info.st_mode)) return TargetOfKind(place, info.st_mode);
    if (const std::optional<int> number = NumberOfDescriptor(place)) {
      return Stream(FileDescriptor::Duplicate(*number, path));
    }
    // The kernel refuses some links, such as those of other users in /tmp; so do we.
    struct stat followed = {};
    if (stat(place.c_str(), &followed) != 0 && errno != ENOENT) {
      return ErrnoStatus(errno, "cannot follow the link '" + place + "'");
    }
    std::error_code error;
    const fs::path next = fs::read_symlink(place, error);
    if (error) return ErrnoStatus(error.value(), "cannot read the link '" + place + "'");
    place = (fs::path(place).parent_path() / next).string();
  }
  return ErrnoStatus(ELOOP, "cannot follow the link '" + path + "'");
}

}  // namespace ringtail
