// The four loops of batch norm over one channel block of one sample: `pixels` pixels of `block`
// channels each (1, 8 or 16). Arrays of per-channel values hold `block` elements. y is `affine`'s,
// whose bounds are the fused activation. Element: float or Bfloat16, which is rounded once.
#ifndef RINGTAIL_LAYERS_KERNELS_BATCH_NORM_H_
#define RINGTAIL_LAYERS_KERNELS_BATCH_NORM_H_

#include <cstdint>

#include "core/kernel_isa.h"
#include "core/kernels/bfloat16.h"
#include "layers/kernels/affine.h"

namespace ringtail {

// BatchNormGradientSums adds up in float, in so many sums side by side, at most so many floats of a
// channel block, which it then adds in double. Who takes the same sums elsewhere in the same way
// gets the same bits.
constexpr int kBatchNormLanes = 16;
constexpr int64_t kBatchNormPiece = 4096;  // 16 KiB, half a first-level cache

// mean[c] = sum(x) / pixels; m2[c] = sum((x - mean[c])^2). Two passes over pieces that stay in the
// first-level cache, pieces combined in double (Chan et al. 1979): safe for |mean| >> std.
RT_DECLARE_KERNEL(template <typename Element> void BatchNormMoments(const Element* src,
                                                                    int64_t pixels, int64_t block,
                                                                    double* mean, double* m2))
// dst = y(src); dst may be src.
RT_DECLARE_KERNEL(template <typename Element>
                  void BatchNormApply(const Element* src, int64_t pixels, int64_t block,
                                      const ChannelAffine& affine, Element* dst))
// With g = low < y(src) < high ? diff_dst : 0:  sum_g = sum(g), sum_gx = sum(g (src - mean)).
RT_DECLARE_KERNEL(template <typename Element> void BatchNormGradientSums(
    const Element* src, const Element* diff_dst, int64_t pixels, int64_t block,
    const ChannelAffine& affine, double* sum_g, double* sum_gx))
// diff_src = scale g + slope (src - mean) + offset; diff_src may be diff_dst.
RT_DECLARE_KERNEL(template <typename Element> void BatchNormGradient(
    const Element* src, const Element* diff_dst, int64_t pixels, int64_t block,
    const ChannelAffine& affine, const float* slope, const float* offset, Element* diff_src))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_BATCH_NORM_H_
