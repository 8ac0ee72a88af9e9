#include "core/storage/file_descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

namespace ringtail {
namespace {

constexpr mode_t kNewFileMode = 0666;
constexpr size_t kMaxTransfer = size_t{1} << 30;  // Linux moves at most 2 GiB - 4 KiB per call

// Repeats a system call that a signal interrupted before it had an effect.
template <typename Call>
auto Uninterrupted(const Call& call) {
  while (true) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

// Calls `read_some`(bytes done, bytes wanted) until `to` is full or the file ends; nullopt on an
// error (errno).
template <typename ReadSome>
std::optional<size_t> Fill(std::span<std::byte> to, const ReadSome& read_some) {
  size_t done = 0;
  while (done < to.size()) {
    const size_t wanted = std::min(to.size() - done, kMaxTransfer);
    const ssize_t got = Uninterrupted([&] { return read_some(done, wanted); });
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

}  // namespace

StatusOr<FileDescriptor> FileDescriptor::Open(const std::string& path, int flags) {
  const int number =
      Uninterrupted([&] { return open(path.c_str(), flags | O_CLOEXEC, kNewFileMode); });
  if (number < 0) return ErrnoStatus(errno, "cannot open '" + path + "'");
  return FileDescriptor(number, path);
}

StatusOr<FileDescriptor> FileDescriptor::Duplicate(int number, const std::string& path) {
  constexpr int kFirstFree = 3;  // not a standard stream
  const int copy = fcntl(number, F_DUPFD_CLOEXEC, kFirstFree);
  if (copy < 0) return ErrnoStatus(errno, "cannot open '" + path + "'");
  return FileDescriptor(copy, path);
}

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) close(number_);
}

StatusOr<size_t> FileDescriptor::Read(std::span<std::byte> to) const {
  const auto result =
      Fill(to, [&](size_t done, size_t wanted) { return read(number_, to.data() + done, wanted); });
  if (!result) return ErrnoStatus(errno, "cannot read '" + path_ + "'");
  return *result;
}

StatusOr<size_t> FileDescriptor::ReadAt(int64_t offset, std::span<std::byte> to) const {
  const auto result = Fill(to, [&](size_t done, size_t wanted) {
    return pread(number_, to.data() + done, wanted, offset + static_cast<int64_t>(done));
  });
  if (!result) return ErrnoStatus(errno, "cannot read '" + path_ + "'");
  return *result;
}

Status FileDescriptor::Write(std::span<const std::byte> from) const {
  while (!from.empty()) {
    const size_t wanted = std::min(from.size(), kMaxTransfer);
    const ssize_t written = Uninterrupted([&] { return write(number_, from.data(), wanted); });
    if (written < 0) return ErrnoStatus(errno, "cannot write '" + path_ + "'");
    if (written == 0) return Internal("cannot write '" + path_ + "': the system took no byte");
    from = from.subspan(static_cast<size_t>(written));
  }
  return OkStatus();
}

Status FileDescriptor::Sync() const {
  // Any error but an interruption is final: the kernel may have dropped the dirty pages and marked
  // them clean, so that a second fsync would report success for data that is lost.
  if (Uninterrupted([&] { return fsync(number_); }) == 0) return OkStatus();
  return ErrnoStatus(errno, "cannot sync '" + path_ + "' to the disk");
}

Status FileDescriptor::SyncFolder() const {
  if (Uninterrupted([&] { return fsync(number_); }) == 0) return OkStatus();
  // Some network file systems cannot sync folders: nothing more can be done.
  if (errno == EINVAL || errno == ENOTSUP) return OkStatus();
  return ErrnoStatus(errno, "cannot sync the folder '" + path_ + "' to the disk");
}

Status FileDescriptor::Close() {
  // Never repeated: Linux frees the number even if close fails, and another thread may already own
  // it.
  if (close(std::exchange(number_, -1)) == 0 || errno == EINTR) return OkStatus();
  return ErrnoStatus(errno, "cannot close '" + path_ + "'");
}

}  // namespace ringtail
