#include "core/aligned_buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "core/terminate.h"

namespace ringtail {
namespace {
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kCacheLine = 64;
}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const size_t alignment = bytes >= kHugePage ? kHugePage : kCacheLine;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  const bool wrapped = rounded < bytes;
  data_ = wrapped ? nullptr : static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
  if (data_ == nullptr) EndWithoutMemory(bytes);
  // Advice only: without huge pages everything works, with more TLB misses.
  if (alignment == kHugePage) (void)madvise(data_, rounded, MADV_HUGEPAGE);
  std::memset(data_, 0, rounded);
}

AlignedBuffer::~AlignedBuffer() { std::free(data_); }

}  // namespace ringtail
