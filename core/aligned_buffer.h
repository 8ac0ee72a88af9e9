// A block of zeroed memory aligned to 64 bytes; from 2 MiB on in huge pages if the kernel has them. Owns its
// memory; movable, not copyable. A moved-from buffer is empty.
//
//   huge page  |              |              |
//   buffer     |..[===================]      |     begins at a place of its own in its first page
//
// Large buffers begin at different places, since loops walk several of them together, as an update does
// weights, gradients and momentum: AMD's first-level cache tells lines apart by bits 12 to 27 of their
// address (the "utag" of its way predictor; Lipp et al. 2020, "Take A Way"), so that one of two lines that are a
// multiple of 256 MiB apart is always thrown out, and every store waits for the second-level cache.
// Measured on a Zen 5: an update of SGD then takes 7 times as long.
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
    std::swap(block_, other.block_);
  }
  std::byte* data() const { return data_; }
  size_t size_bytes() const { return bytes_; }
  std::span<float> floats() const {
    return {reinterpret_cast<float*>(data_), bytes_ / sizeof(float)};
  }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  void* block_ = nullptr;  // that was allocated; the data begin in it
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_ALIGNED_BUFFER_H_
