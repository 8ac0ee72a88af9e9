#include "dist/membership/security/private_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <span>

#include "core/storage/file_descriptor.h"

namespace ringtail {
namespace {

constexpr size_t kMaxBytes = 1 << 20;
constexpr uid_t kRoot = 0;

}  // namespace

bool IsPrivate(mode_t mode, uid_t owner) {
  const mode_t others = mode & (S_IRWXG | S_IRWXO);
  return others == 0 || (owner == kRoot && others == S_IRGRP);
}

StatusOr<std::string> ReadPrivateFile(const std::string& path) {
  // O_NONBLOCK: a pipe without a writer must not block us before we see that it is one.
  RT_ASSIGN_OR_RETURN(const FileDescriptor file,
                      FileDescriptor::Open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat state {};
  if (fstat(file.number(), &state) != 0) return ErrnoStatus(errno, path);
  if (!S_ISREG(state.st_mode)) return InvalidArgument(fmt::format("{} is no regular file", path));
  if (!IsPrivate(state.st_mode, state.st_uid)) {
    return Status(StatusCode::kPermissionDenied,
                  fmt::format("{} is open to other users (mode {:04o}), so that its content is no "
                              "secret: make a new one, and chmod 600 it (a file of root's may have "
                              "0640 or 0440; in Kubernetes, `defaultMode: 0440`)",
                              path, state.st_mode & 07777));
  }
  std::string content(kMaxBytes + 1, '\0');
  RT_ASSIGN_OR_RETURN(const size_t bytes, file.Read(std::as_writable_bytes(std::span(content))));
  if (bytes > kMaxBytes) {
    return ResourceExhausted(fmt::format("{} has more than {} bytes", path, kMaxBytes));
  }
  content.resize(bytes);
  return content;
}

}  // namespace ringtail
