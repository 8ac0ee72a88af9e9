// An open file of the operating system, closed with its owner. Interrupted calls are repeated,
// short reads and writes continued; every error names the file.
//
// Reading is forgiving, writing is not: who writes calls Close() and looks at what it says, because
// a network file system reports a full disk only there. The destructor closes what an error left
// open. Thread-safety: none, but for ReadAt. Errors: the code of the failed system call
// (core/status.h ErrnoStatus).
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
  // open(2) with O_CLOEXEC: no program that we start inherits it.
  // New files get 0666 less the umask.
  static StatusOr<FileDescriptor> Open(const std::string& path, int flags);
  // Another number of the open file `number`, which goes on where that one stands and stays open
  // when that one is closed. `path` is what messages call it.
  static StatusOr<FileDescriptor> Duplicate(int number, const std::string& path);

  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept
      : number_(std::exchange(other.number_, -1)), path_(std::move(other.path_)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    const FileDescriptor old(std::move(*this));  // closed here, not whenever `other` ends
    std::swap(number_, other.number_);
    std::swap(path_, other.path_);
    return *this;
  }

  int number() const { return number_; }
  const std::string& path() const { return path_; }

  // Bytes read into the start of `to`; fewer than `to.size()` only at the end of the file.
  StatusOr<size_t> Read(std::span<std::byte> to) const;
  // The same from `offset`, without moving where Read goes on; from any number of threads.
  StatusOr<size_t> ReadAt(int64_t offset, std::span<std::byte> to) const;
  Status Write(std::span<const std::byte> from) const;  // all of it
  Status Sync() const;                                  // until it is on the disk
  Status SyncFolder() const;  // the names in it; OK, too, on file systems that cannot sync folders
  Status Close();

 private:
  FileDescriptor(int number, std::string path) : number_(number), path_(std::move(path)) {}
  int number_;
  std::string path_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_FILE_DESCRIPTOR_H_
