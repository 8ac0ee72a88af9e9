#include "core/aligned_buffer.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "core/terminate.h"

namespace ringtail {
namespace {
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kCacheLine = 64;

// Where the next large buffer begins in its first huge page: another page and another line of it than the
// buffers before.
size_t NextShift() {
  constexpr size_t kShift = 4096 + kCacheLine, kShifts = 61;
  static std::atomic<size_t> buffers = 0;
  return buffers.fetch_add(1, std::memory_order_relaxed) % kShifts * kShift;
}

}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const bool large = bytes >= kHugePage;
  const size_t alignment = large ? kHugePage : kCacheLine, shift = large ? NextShift() : 0;
  const size_t rounded = (bytes + shift + alignment - 1) / alignment * alignment;
  const bool wrapped = rounded < bytes;
  block_ = wrapped ? nullptr : std::aligned_alloc(alignment, rounded);
  if (block_ == nullptr) EndWithoutMemory(bytes);
  // Advice only: without huge pages everything works, with more TLB misses.
  if (large) (void)madvise(block_, rounded, MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(block_) + shift;
  std::memset(data_, 0, rounded - shift);
}

AlignedBuffer::~AlignedBuffer() { std::free(block_); }

}  // namespace ringtail
