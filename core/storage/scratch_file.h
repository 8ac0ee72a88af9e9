// ScratchFile: memory that the kernel may write to disk when it is needed elsewhere: a file without a
// name, mapped. For data that is larger than what a process may keep, and is read once.
//
// Room on the disk is reserved at once, so that a full disk is an error here and not a signal later.
// Thread-safety: as memory. Errors: ResourceExhausted or Unavailable, naming the folder, if it cannot be
// made there; the caller may continue without. Cost: pages are as fast as memory until the kernel needs them
// for others; on a file system in memory it is memory.
#ifndef RINGTAIL_CORE_STORAGE_SCRATCH_FILE_H_
#define RINGTAIL_CORE_STORAGE_SCRATCH_FILE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/status.h"

namespace ringtail {

class ScratchFile {
 public:
  // `bytes` zeros on the file system of `folder`, aligned to a page.
  static StatusOr<std::unique_ptr<ScratchFile>> Create(const std::string& folder, size_t bytes);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  explicit ScratchFile(std::span<std::byte> bytes) : bytes_(bytes) {}
  const std::span<std::byte> bytes_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_SCRATCH_FILE_H_
