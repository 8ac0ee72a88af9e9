// An open file of the operating system, closed with its owner. Repeats interrupted calls, continues
// short reads and writes; every error names the file.
//
// Writers must call Close() and check its status, because a network file system may report a full
// disk only there. The destructor closes a file that an error left open. Thread-safety: none,
// except ReadAt. Errors: the code of the failed system call (core/status.h ErrnoStatus).
#ifndef RINGTAIL_CORE_STORAGE_FILE_DESCRIPTOR_H_
#define RINGTAIL_CORE_STORAGE_FILE_DESCRIPTOR_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "core/status.h"

namespace ringtail {

class FileDescriptor {
 public:
  // open(2) with O_CLOEXEC: programs that we start do not inherit it. New files get mode 0666 less
  // the umask.
  static StatusOr<FileDescriptor> Open(const std::string& path, int flags);
  // A duplicate of the open file `number`, with the same position; stays open when that one is
  // closed. Messages call it `path`.
  static StatusOr<FileDescriptor> Duplicate(int number, const std::string& path);

  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept
      : number_(std::exchange(other.number_, -1)), path_(std::move(other.path_)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    const FileDescriptor old(std::move(*this));  // closed here, not when `other` is destroyed
    std::swap(number_, other.number_);
    std::swap(path_, other.path_);
    return *this;
  }

  int number() const { return number_; }
  const std::string& path() const { return path_; }

  // Bytes read into the start of `to`; fewer than `to.size()` only at the end of the file.
  StatusOr<size_t> Read(std::span<std::byte> to) const;
  // The same from `offset`, without moving the position; from any number of threads.
  StatusOr<size_t> ReadAt(int64_t offset, std::span<std::byte> to) const;
  Status Write(std::span<const std::byte> from) const;  // all of it
  Status Sync() const;                                  // until it is on the disk
  Status SyncFolder() const;  // the names in it; also OK on file systems that cannot sync folders
  Status Close();

 private:
  FileDescriptor(int number, std::string path) : number_(number), path_(std::move(path)) {}
  int number_;
  std::string path_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_FILE_DESCRIPTOR_H_
