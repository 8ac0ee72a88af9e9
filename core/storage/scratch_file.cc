#include "core/storage/scratch_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ringtail {
namespace {

Status Failed(const std::string& folder, size_t bytes, int error) {
  const auto code = error == ENOSPC ? StatusCode::kResourceExhausted : StatusCode::kUnavailable;
  return {code, fmt::format("cannot reserve {:.1f} MiB in '{}': {}",
                            static_cast<double>(bytes) / (1 << 20), folder, std::strerror(error))};
}

}  // namespace

StatusOr<std::unique_ptr<ScratchFile>> ScratchFile::Create(const std::string& folder,
                                                           size_t bytes) {
  bytes = std::max<size_t>(bytes, 1);  // there is no mapping of nothing
  const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) return Failed(folder, bytes, errno);
  int error = posix_fallocate(file, 0, static_cast<off_t>(bytes));
  void* memory = MAP_FAILED;
  if (error == 0) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) error = errno;
  }
  close(file);  // the mapping keeps it
  if (error != 0) return Failed(folder, bytes, error);
  return std::unique_ptr<ScratchFile>(new ScratchFile({static_cast<std::byte*>(memory), bytes}));
}

ScratchFile::~ScratchFile() { munmap(bytes_.data(), bytes_.size()); }

}  // namespace ringtail
