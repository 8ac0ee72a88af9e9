#include "dist/transport/shared_memory/shared_segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "dist/transport/frames/keyed_hash.h"

namespace ringtail {

StatusOr<SharedMapping> SharedMapping::Map(int file, uint64_t offset, size_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) return ErrnoStatus(errno, "mapping shared memory");
  SharedMapping mapping;
  mapping.bytes_ = {static_cast<std::byte*>(memory), bytes};
  return mapping;
}

SharedMapping::~SharedMapping() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

StatusOr<SharedSegment> SharedSegment::Create(size_t bytes) {
  const int file = memfd_create("ringtail", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return ErrnoStatus(errno, "making shared memory");
  SharedSegment segment{OwnedDescriptor(file)};
  const std::string key = RandomBytes(kSegmentKeyBytes);
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0 ||
      pwrite(file, key.data(), key.size(), 0) != static_cast<ssize_t>(key.size()) ||
      fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return ErrnoStatus(errno, fmt::format("making {} bytes of shared memory", bytes));
  }
  segment.key_ = key;
  return segment;
}

StatusOr<SharedSegment> SharedSegment::Open(const SegmentName& name, uint64_t bytes) {
  const std::string path = fmt::format("/proc/{}/fd/{}", name.pid, name.file);
  // Nothing but a file is opened at all: of a device that alone may be an event.
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) return ErrnoStatus(errno, path);
  if (!S_ISREG(about.st_mode)) return DataLoss(path + " is no file");
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return ErrnoStatus(errno, path);
  SharedSegment segment{OwnedDescriptor(file)};
  const int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return DataLoss(path + " is no sealed shared memory");
  }
  if (fstat(file, &about) != 0) return ErrnoStatus(errno, path);
  if (static_cast<uint64_t>(about.st_size) < bytes) {
    return DataLoss(fmt::format("{} has {} bytes, and not {}", path, about.st_size, bytes));
  }
  std::array<char, kSegmentKeyBytes> key;
  if (pread(file, key.data(), key.size(), 0) != static_cast<ssize_t>(key.size()) ||
      name.key != std::string(key.data(), key.size())) {
    return DataLoss(path + " does not have the key: it is something else");
  }
  return segment;
}

SegmentName SharedSegment::name() const {
  return {.pid = getpid(), .file = file_.number(), .key = key_};
}

}  // namespace ringtail
