// The rows of a plane: how depthwise convolution's loops read and write them. Only for
// layers/kernels/depthwise*.cc.
#ifndef RINGTAIL_LAYERS_KERNELS_DEPTHWISE_ROWS_H_
#define RINGTAIL_LAYERS_KERNELS_DEPTHWISE_ROWS_H_

#include <cstdint>

#include "layers/kernels/depthwise.h"
#include "layers/kernels/vec_affine.h"

namespace ringtail::RT_KERNEL_ISA::depthwise {

static inline bool IsMapped(const DepthwiseSrc& src) { return src.affine.mean != nullptr; }
static inline bool IsMapped(const DepthwiseGradient& gradient) {
  return gradient.map.src != nullptr;
}

// Maps `floats` floats, starting `offset` after the first of the plane.
static inline void MapTo(const DepthwiseSrc& src, int64_t offset, int64_t floats, float* to) {
  const VecAffine map(src.affine);
  const float* from = src.data + offset;
  for (int64_t i = 0; i < floats; i += kLanes) Store(to + i, map(Load(from + i)));
}
static inline void MapTo(const DepthwiseGradient& gradient, int64_t offset, int64_t floats,
                         float* to) {
  const VecGradient map(gradient.map);
  const float *src = gradient.map.src + offset, *from = gradient.data + offset;
  for (int64_t i = 0; i < floats; i += kLanes) {
    Store(to + i, map(Load(src + i), Load(from + i)));
  }
}

// Rows of an input, DepthwiseSrc or DepthwiseGradient. To be read from the top to the bottom: a
// mapped row is overwritten kKernel rows later.
template <int kKernel, typename Input>
class InputRows {
 public:
  InputRows(const Input& input, int64_t width) : input_(input), floats_(width * kLanes) {}

  const float* At(int64_t y) {
    if (!IsMapped(input_)) return input_.data + y * floats_;
    for (; next_ <= y; ++next_) MapTo(input_, next_ * floats_, floats_, RingRow(next_));
    return RingRow(y);
  }

 private:
  float* RingRow(int64_t y) const { return input_.ring + y % kKernel * floats_; }

  const Input input_;
  const int64_t floats_;  // per row
  int64_t next_ = 0;      // to be mapped
};

// Rows of an output.
class OutputRows {
 public:
  OutputRows(const DepthwiseOutput& out, int64_t width) : out_(out), floats_(width * kLanes) {}

  // The place to write to.
  float* At(int64_t y) const {
    if (out_.buffer == nullptr) return out_.data + y * floats_;
    return out_.buffer + y % out_.buffer_rows * floats_;
  }
  // Rows [begin, end) are complete: no more than the buffer has.
  void Finish(int64_t begin, int64_t end) const {
    if (out_.buffer == nullptr) return;
    const float* from = At(begin);
    float* to = out_.data + begin * floats_;
    const int64_t floats = (end - begin) * floats_;
    for (int64_t i = 0; i < floats; i += kLanes) StoreStreaming(to + i, Load(from + i));
  }

 private:
  const DepthwiseOutput out_;
  const int64_t floats_;  // per row
};

}  // namespace ringtail::RT_KERNEL_ISA::depthwise

#endif  // RINGTAIL_LAYERS_KERNELS_DEPTHWISE_ROWS_H_
