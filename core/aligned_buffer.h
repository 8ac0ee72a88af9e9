// A block of zeroed memory aligned to 2 MiB (so that the kernel can back it with huge pages), or to
// 64 bytes when small. Owns its memory; movable, not copyable. A moved-from buffer is empty.
// Thread-safety: none. Cost: one pass over the memory at construction.
#ifndef RINGTAIL_CORE_ALIGNED_BUFFER_H_
#define RINGTAIL_CORE_ALIGNED_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace ringtail {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Ends the process with a message that names the size if the memory cannot be allocated.
  explicit AlignedBuffer(size_t bytes);
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept { swap(other); }
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    AlignedBuffer old(std::move(*this));  // freed here, not whenever `other` ends
    swap(other);
    return *this;
  }
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;

  void swap(AlignedBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  std::byte* data() const { return data_; }
  size_t size_bytes() const { return bytes_; }
  std::span<float> floats() const {
    return {reinterpret_cast<float*>(data_), bytes_ / sizeof(float)};
  }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_ALIGNED_BUFFER_H_
