// Memory that processes of one host share: made by one, mapped by others.
//
// It is a memfd: a file without a name that exists as long as a process has it open or mapped. So
// nothing is ever left behind in /dev/shm, however a process ends, and its size limit (64 MB in
// most containers) does not count; the pages count as the memory of the process that touches them
// first. A peer opens it as /proc/<pid>/fd/<number>, which the kernel allows to processes of the
// same user, and checks that it got what it was told of: a memfd, sealed so that no process can
// truncate it (reading memory beyond the end of a file kills the reader), large enough, with the
// key.
//
// Thread-safety: as a value. Errors: the system call's, with what it was for.
#ifndef RINGTAIL_DIST_TRANSPORT_SHARED_MEMORY_SHARED_SEGMENT_H_
#define RINGTAIL_DIST_TRANSPORT_SHARED_MEMORY_SHARED_SEGMENT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "core/status.h"
#include "dist/transport/owned_descriptor.h"

namespace ringtail {

// A mapped range of a segment, unmapped with its owner.
class SharedMapping {
 public:
  SharedMapping() = default;
  static StatusOr<SharedMapping> Map(int file, uint64_t offset, size_t bytes);
  ~SharedMapping();
  SharedMapping(SharedMapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  SharedMapping& operator=(SharedMapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

// Where offsets of mappings may lie: a multiple of every page size.
inline constexpr size_t kSegmentAlignment = 64 << 10;
// The first bytes of a segment.
inline constexpr size_t kSegmentKeyBytes = 16;

// What a peer has to know to map a part of a segment. Comes from the peer: not believed.
struct SegmentName {
  int64_t pid = 0;
  int file = -1;    // its descriptor there
  std::string key;  // kSegmentKeyBytes random bytes

  bool operator==(const SegmentName&) const = default;
};

// The open file of a segment, closed with its owner; mappings of it stay.
class SharedSegment {
 public:
  // Zeros, but for the key. Pages take memory when they are touched.
  static StatusOr<SharedSegment> Create(size_t bytes);
  // A peer's, with at least `bytes` bytes.
  static StatusOr<SharedSegment> Open(const SegmentName& name, uint64_t bytes);

  SegmentName name() const;  // of one that was made here
  StatusOr<SharedMapping> Map(uint64_t offset, size_t bytes) const {
    return SharedMapping::Map(file_.number(), offset, bytes);
  }

 private:
  explicit SharedSegment(OwnedDescriptor file) : file_(std::move(file)) {}
  OwnedDescriptor file_;
  std::string key_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_SHARED_MEMORY_SHARED_SEGMENT_H_
