// The matrix products of 1x1 convolutions on bf16 blobs, by vdpbf16ps: as in bf16_products.h only
// where HasBf16Products(), with its numerics. Blobs, pieces and panels as in pointwise.h; channels
// that only pad a block are zero and are multiplied like all others.
#ifndef RINGTAIL_LAYERS_KERNELS_BF16_POINTWISE_BF16_H_
#define RINGTAIL_LAYERS_KERNELS_BF16_POINTWISE_BF16_H_

#include <cstdint>

#include "core/kernel_isa.h"
#include "core/kernels/bfloat16.h"
#include "layers/kernels/affine.h"

namespace ringtail {

// PointwiseGradientSums (pointwise.h) of a bf16 blob, from what is written to it.
struct PointwiseBf16GradientSums {
  const Bfloat16* src;  // null: not wanted
  ChannelAffine affine;
  double *g, *gx;
  int64_t stride;
};

// out[pixel][k] = act(bias[k] + sum over c of in[pixel][c] weight[c][k]) for the k of one panel, 1 or
// 2 channel blocks; summed in f32 and rounded once (subnormal numbers become 0).
struct PointwiseBf16Product {
  const Bfloat16* in;        // first piece: [channel block][pixel][lane]
  int64_t in_block_stride;   // numbers between channel blocks
  int64_t in_sample_stride;  // between pieces
  int64_t channel_blocks;
  const Bfloat16* weight;       // [pair of channels][panel_blocks * lanes][2]
  const Bfloat16* next_weight;  // what the next call will read: fetched meanwhile
  const float* bias;            // panel_blocks * lanes, or null
  int panel_blocks;
  Bfloat16* out;
  int64_t out_block_stride, out_sample_stride;
  int64_t pieces, pixels;  // pixels per piece
  bool add;                // to what is in `out`, before rounding
  bool clamp;              // the fused activation
  float low, high;
  // The moments of what is written, as in PointwiseProduct; null: not wanted.
  double *mean, *m2;
  int64_t moments_stride;
  PointwiseBf16GradientSums sums;
};
RT_DECLARE_KERNEL(void PointwiseBf16Multiply(const PointwiseBf16Product& product))

// The weights of one panel, rounded: to[pair][k][i], k < panel_blocks * lanes, i < 2, is
// weight[k * k_stride + (2 pair + i) * c_stride], one of the strides being 1, or zero for
// k >= outputs or 2 pair + i >= channels.
struct PointwiseBf16Panel {
  const float* weight;
  int64_t k_stride, c_stride;
  int64_t outputs, channels;
  int panel_blocks;
  Bfloat16* to;
};
RT_DECLARE_KERNEL(void PointwiseBf16Pack(const PointwiseBf16Panel& panel))

// Pixels of one channel block through the affine's map, rounded, as batch norm writes them:
// [pixel][lane] to the same (but a subnormal number becomes 0).
RT_DECLARE_KERNEL(void MapBf16Pixels(const Bfloat16* from, int64_t pixels,
                                     const ChannelAffine& affine, Bfloat16* to))

// Pixels at a time of PointwiseBf16Multiply: pieces should be multiples of it.
constexpr int64_t kPointwiseBf16Pixels = 14;

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_BF16_POINTWISE_BF16_H_
