// BlobMoments: the mean of each channel and its sum of squared deviations, over parts of a blob. A
// layer whose dst goes into batch norm can take them while what it writes is still in the cache
// (LayerPlan::dst_moments_pixels): batch norm then need not read the blob for them.
#ifndef RINGTAIL_LAYERS_MOMENTS_H_
#define RINGTAIL_LAYERS_MOMENTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "layers/blob.h"

namespace ringtail {

// Parts are stretches of `part_pixels` pixels of one plane, the last of a plane perhaps shorter.
// Arrays: [sample][part][channel, with padding].
struct BlobMoments {
  double *mean = nullptr, *m2 = nullptr;  // null: not wanted
  int64_t part_pixels = 0;

  explicit operator bool() const { return mean != nullptr; }
  int64_t parts(const BlobDesc& desc) const {
    return (desc.plane() + part_pixels - 1) / part_pixels;
  }
  int64_t PixelsOf(const BlobDesc& desc, int64_t part) const {
    return std::min(part_pixels, desc.plane() - part * part_pixels);
  }
  // Where the values of one channel block lie.
  int64_t At(const BlobDesc& desc, int64_t sample, int64_t part, int64_t block) const {
    return ((sample * parts(desc) + part) * desc.channel_blocks() + block) * desc.block;
  }
  int64_t elements(const BlobDesc& desc) const { return At(desc, desc.N, 0, 0); }  // of one array
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_MOMENTS_H_
