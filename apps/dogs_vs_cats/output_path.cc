#include "apps/dogs_vs_cats/output_path.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string_view>

namespace ringtail {

StatusOr<std::string> OutputPath(const std::string& flag) {
  constexpr std::array<std::string_view, 4> kStandardOutput = {"-", "/dev/stdout", "/dev/fd/1",
                                                               "/proc/self/fd/1"};
  if (std::find(kStandardOutput.begin(), kStandardOutput.end(), flag) == kStandardOutput.end()) {
    return flag;
  }
  std::cout.flush();
  std::fflush(stdout);
  constexpr int kFirstFree = 3;  // stays open until the program ends
  const int output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, kFirstFree);
  if (output < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    return ErrnoStatus(errno, fmt::format("cannot write to standard output ('{}')", flag));
  }
  return fmt::format("/proc/self/fd/{}", output);
}

Status CheckOutputPath(const std::string& path) {
  namespace fs = std::filesystem;
  if (path.starts_with("/proc/")) return OkStatus();  // an open descriptor
  std::error_code error;
  const fs::path target = fs::weakly_canonical(fs::absolute(path), error);
  if (error) return ErrnoStatus(error.value(), fmt::format("cannot write '{}'", path));
  const fs::file_status status = fs::status(target, error);
  if (fs::is_directory(status)) {
    return InvalidArgument(fmt::format("'{}' is a folder; give the name of a file", path));
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) return OkStatus();  // a pipe, a device
  const std::string folder = target.parent_path().string() + "/.";
  if (access(folder.c_str(), W_OK | X_OK) == 0) return OkStatus();
  return ErrnoStatus(errno, fmt::format("cannot write '{}'", path));
}

}  // namespace ringtail
