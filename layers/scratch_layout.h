// ScratchLayout: lays the arrays of one call out in a block of scratch or state. Each starts on a
// cache line. A layer adds its arrays at Setup, plans bytes() of memory, and finds each array in a
// call by its offset:
//
//   sums_ = layout.Add<double>(2 * C);                       Setup
//   plan.scratch_bytes = layout.bytes();
//   double* sums = ArrayAt<double>(args.scratch, sums_);     Forward, Backward
//
// Thread-safety: const methods from any thread.
#ifndef RINGTAIL_LAYERS_SCRATCH_LAYOUT_H_
#define RINGTAIL_LAYERS_SCRATCH_LAYOUT_H_

#include <cstddef>
#include <cstdint>

#include "core/round.h"

namespace ringtail {

class ScratchLayout {
 public:
  // The offset of a new area, in bytes; a multiple of 64.
  size_t AddBytes(size_t bytes) {
    const size_t offset = bytes_;
    bytes_ += RoundUp(bytes, kAlignment);
    return offset;
  }
  // The same for `count` elements.
  template <typename Element>
  size_t Add(int64_t count) {
    return AddBytes(static_cast<size_t>(count) * sizeof(Element));
  }
  size_t bytes() const { return bytes_; }  // of all areas

 private:
  static constexpr size_t kAlignment = 64;
  size_t bytes_ = 0;
};

template <typename Element>
Element* ArrayAt(std::byte* block, size_t offset) {
  return reinterpret_cast<Element*>(block + offset);
}

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_SCRATCH_LAYOUT_H_
