// Depthwise convolution of one channel block of one sample, in the three directions. The block has
// the lanes of the instruction set (16 for AVX-512, else 8); padding reads nothing, and is not
// mapped.
//   src (H, W, lane), weight (K, K, lane), bias (lane) -> dst (OH, OW, lane)
// Cost: reads every input once from memory, writes every output once; K K multiply-adds per lane of
// dst. A row of the window comes from the first- or second-level cache: it was read for the row of
// outputs before.
#ifndef RINGTAIL_LAYERS_KERNELS_DEPTHWISE_H_
#define RINGTAIL_LAYERS_KERNELS_DEPTHWISE_H_

#include <cstdint>

#include "layers/kernels/affine.h"
#include "layers/kernels/kernels.h"

namespace ringtail {

// Output (y, x) is a sum over rows y * stride - pad_top + i and columns x * stride - pad_left + j,
// 0 <= i, j < kernel, as far as they exist.
struct DepthwisePlane {
  int kernel, stride;  // 3 or 5; 1 or 2
  int64_t H, W, OH, OW;
  int64_t pad_top, pad_left;
};

// src (H, W, lane), or a map of it: then each row is mapped once, into a ring of the K rows that a
// window sees at a time, which stays in the first-level cache.
struct DepthwiseSrc {
  const float* data;
  ChannelAffine affine;
  float* ring;  // (K, W, lane); not used without a map
};

// What is added to an output and how it is clamped, on its way out.
struct DepthwiseEpilogue {
  const float* bias;  // (lane)
  float low, high;    // the fused activation
};

RT_DECLARE_KERNEL(void DepthwiseForward(const DepthwisePlane& plane, const DepthwiseSrc& src,
                                        const float* weight, const DepthwiseEpilogue& epilogue,
                                        float* dst))
RT_DECLARE_KERNEL(void DepthwiseBackwardData(const DepthwisePlane& plane, const float* diff_dst,
                                             const float* weight, float* diff_src))
// Adds to diff_weight (K, K, lane) and, unless it is null, to diff_bias (lane).
RT_DECLARE_KERNEL(void DepthwiseBackwardWeights(const DepthwisePlane& plane,
                                                const DepthwiseSrc& src, const float* diff_dst,
                                                float* diff_weight, float* diff_bias))
RT_DECLARE_KERNEL(int64_t DepthwiseLanes())

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_DEPTHWISE_H_
