// ByteCursor: reads bytes that lie in several pieces as if they were one after the other, and
// copies each once, or not at all. Thread-safety: none.
#ifndef RINGTAIL_DIST_TRANSPORT_FRAMES_BYTE_CURSOR_H_
#define RINGTAIL_DIST_TRANSPORT_FRAMES_BYTE_CURSOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace ringtail {

class ByteCursor {
 public:
  using Pieces = std::span<const std::span<const std::byte>>;

  // `pieces` and what they refer to must outlive the cursor.
  explicit ByteCursor(Pieces pieces) : pieces_(pieces) {
    for (const auto& piece : pieces_) left_ += piece.size();
  }

  size_t left() const { return left_; }

  // The next to.size() bytes, or false if there are not as many left.
  bool Read(std::span<std::byte> to) {
    if (to.size() > left_) return false;
    left_ -= to.size();
    while (!to.empty()) {
      const std::span<const std::byte> rest = pieces_.front().subspan(offset_);
      const size_t bytes = std::min(rest.size(), to.size());
      if (bytes > 0) std::memcpy(to.data(), rest.data(), bytes);
      to = to.subspan(bytes);
      offset_ += bytes;
      if (bytes == rest.size()) {
        pieces_ = pieces_.subspan(1);
        offset_ = 0;
      }
    }
    return true;
  }

  // The next `bytes` where they lie, if that is in one piece and at a multiple of `alignment`: they
  // are read then. Else nothing, and nothing is read. `bytes` > 0.
  std::span<const std::byte> ReadInPlace(size_t bytes, size_t alignment) {
    if (bytes > left_ || bytes > pieces_.front().size() - offset_) return {};
    const std::span<const std::byte> there = pieces_.front().subspan(offset_, bytes);
    if (reinterpret_cast<uintptr_t>(there.data()) % alignment != 0) return {};
    left_ -= bytes;
    offset_ += bytes;
    if (offset_ == pieces_.front().size()) {
      pieces_ = pieces_.subspan(1);
      offset_ = 0;
    }
    return there;
  }

 private:
  Pieces pieces_;
  size_t offset_ = 0;  // in the first piece
  size_t left_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_FRAMES_BYTE_CURSOR_H_
