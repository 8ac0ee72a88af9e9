// Sums that batch norm needs of a blob, over parts of the blob, so that a neighbour can take them
// while it writes the blob: batch norm then does not read the blob for them (layers/fusion.h).
//
//   BlobMoments       of batch norm's src: mean and sum of squared deviations of each channel;
//                     taken by the previous layer (FusionPlan::dst_moments_pixels)
//   BlobGradientSums  of its diff_dst: the two sums of its backward; taken by the next layer
//                     (FusionPlan::diff_src_sums_pixels)
// Thread-safety: value types; several threads may write different parts.
#ifndef RINGTAIL_LAYERS_MOMENTS_H_
#define RINGTAIL_LAYERS_MOMENTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "layers/blob.h"

namespace ringtail {

// Parts are stretches of `part_pixels` pixels of one plane; the last of a plane may be shorter.
// Arrays: [sample][part][channel, with padding].
struct BlobParts {
  int64_t part_pixels = 0;

  int64_t parts(const BlobDesc& desc) const { return CeilDivide(desc.plane(), part_pixels); }
  int64_t PixelsOf(const BlobDesc& desc, int64_t part) const {
    return std::min(part_pixels, desc.plane() - part * part_pixels);
  }
  // Where the values of one channel block lie.
  int64_t At(const BlobDesc& desc, int64_t sample, int64_t part, int64_t block) const {
    return ((sample * parts(desc) + part) * desc.channel_blocks() + block) * desc.block;
  }
  int64_t elements(const BlobDesc& desc) const { return At(desc, desc.N, 0, 0); }  // of one array
};

struct BlobMoments : BlobParts {
  double *mean = nullptr, *m2 = nullptr;  // null: not wanted

  explicit operator bool() const { return mean != nullptr; }
};

// With g, the gradient before batch norm's activation, as BatchNormGradientSums (kernels/
// batch_norm.h) has it: sum g, sum g (src - mean).
struct BlobGradientSums : BlobParts {
  double *g = nullptr, *gx = nullptr;  // null: not wanted

  explicit operator bool() const { return g != nullptr; }
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_MOMENTS_H_
