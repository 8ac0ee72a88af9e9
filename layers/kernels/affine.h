// ChannelAffine: an affine map of each channel, and a clamp: what batch norm does to its input once
// the statistics are known. Kernels that load an input can apply it on the way (vec_affine.h).
#ifndef RINGTAIL_LAYERS_KERNELS_AFFINE_H_
#define RINGTAIL_LAYERS_KERNELS_AFFINE_H_

#include <cstdint>

namespace ringtail {

// y = min(max((x - mean) * scale + bias, low), high), or y = x where `mean` is null. The arrays
// have one value per channel, of padding channels, too, which map 0 to 0.
struct ChannelAffine {
  const float *mean = nullptr, *scale = nullptr, *bias = nullptr;
  float low = 0, high = 0;

  bool is_identity() const { return mean == nullptr; }
  // The map of the channels from `channel` on. Not for kernels (core/kernel_isa.h), as
  // is_identity().
  ChannelAffine From(int64_t channel) const {
    if (is_identity()) return *this;
    return {mean + channel, scale + channel, bias + channel, low, high};
  }
};

// The gradient of such a map's input where mean and scale come from the batch, as batch norm's do:
// with g = low < y(src) < high ? diff_dst : 0,
//   diff_src = scale g + slope (src - mean) + offset, or diff_dst where `src` is null.
struct ChannelGradient {
  const float *src = nullptr;
  ChannelAffine affine;
  const float *slope = nullptr, *offset = nullptr;  // one value per channel

  bool is_identity() const { return src == nullptr; }
  // Not for kernels (core/kernel_isa.h), as is_identity(). `src` stays: a blob, not per channel.
  ChannelGradient From(int64_t channel) const {
    if (is_identity()) return *this;
    return {src, affine.From(channel), slope + channel, offset + channel};
  }
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_AFFINE_H_
