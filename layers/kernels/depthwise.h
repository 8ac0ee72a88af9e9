// Depthwise convolution of one channel block of one sample, in both directions. The block has the
// lanes of the instruction set (16 for AVX-512, else 8); padding reads nothing, and is not mapped.
//   src (H, W, lane), weight (K, K, lane), bias (lane) -> dst (OH, OW, lane)
// Cost: reads every input once from memory, writes every output once; K K multiply-adds per lane of
// dst (backward: twice that). A row of the window comes from the first- or second-level cache: it
// was read for the row of outputs before.
#ifndef RINGTAIL_LAYERS_KERNELS_DEPTHWISE_H_
#define RINGTAIL_LAYERS_KERNELS_DEPTHWISE_H_

#include <cstdint>

#include "core/kernel_isa.h"
#include "layers/kernels/affine.h"

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

// The same for diff_dst (OH, OW, lane); map.src is this plane's.
struct DepthwiseGradient {
  const float* data;
  ChannelGradient map;
  float* ring;  // (K, OW, lane)
};

// The plane that is written. With a buffer, rows are written there first, and then to memory past
// the caches: so memory need not be read before it is overwritten.
struct DepthwiseOutput {
  float* data = nullptr;    // aligned to a register if there is a buffer
  float* buffer = nullptr;  // (buffer_rows, width, lane), or null
  int64_t buffer_rows = 1;  // or all rows
};

// Moments of dst (BatchNormMoments), taken while it is in a cache. With them dst's buffer has all
// rows.
struct DepthwiseMoments {
  double *mean = nullptr, *m2 = nullptr;  // (lane); null: not wanted
};

// Sums of diff_src (BatchNormGradientSums), taken while it and src, which is mapped, are in a
// cache, with the map that src has.
struct DepthwiseSums {
  double *g = nullptr, *gx = nullptr;  // (lane); null: not wanted
};

// The bias that is added to each output, and the bounds that it is clamped to.
struct DepthwiseEpilogue {
  const float* bias;  // (lane)
  float low, high;    // the fused activation
};

RT_DECLARE_KERNEL(void DepthwiseForward(const DepthwisePlane& plane, const DepthwiseSrc& src,
                                        const float* weight, const DepthwiseEpilogue& epilogue,
                                        const DepthwiseOutput& dst,
                                        const DepthwiseMoments& moments))
// Writes diff_src and adds to diff_weight (K, K, lane) and diff_bias (lane): one pass over the
// rows of diff_dst serves all three. Those that are null are not wanted; src is diff_weight's, and
// the sums' of diff_src.
RT_DECLARE_KERNEL(void DepthwiseBackward(const DepthwisePlane& plane, const DepthwiseSrc& src,
                                         const DepthwiseGradient& diff_dst, const float* weight,
                                         const DepthwiseOutput& diff_src, float* diff_weight,
                                         float* diff_bias, const DepthwiseSums& diff_src_sums))
RT_DECLARE_KERNEL(int64_t DepthwiseLanes())

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_DEPTHWISE_H_
