// The matrix products of 1x1 convolutions. Activations are blocked by the lanes of the instruction
// set: one channel block of one sample is [pixel][lane]. A "piece" is a stretch of pixels of one
// sample; a product works on pieces of the same size in one or more samples that follow each other.
#ifndef RINGTAIL_LAYERS_KERNELS_POINTWISE_H_
#define RINGTAIL_LAYERS_KERNELS_POINTWISE_H_

#include <cstdint>

#include "core/kernel_isa.h"
#include "layers/kernels/affine.h"

namespace ringtail {

// Channel blocks of pixels that a later call will read: fetched from memory while this one
// computes, as far as this one reads as many itself. Pixel p of piece i in block b lies at
// at + b * block_stride + i * sample_stride + p * lanes.
struct PointwiseFetch {
  const float* at;  // null: nothing
  int64_t block_stride, sample_stride;
};

// The sums of batch norm's backward over each piece of `out`, the gradient of its dst, as
// BatchNormGradientSums defines them; in float. src is batch norm's, laid out as `out`; arrays of
// the affine begin with the panel's first k. Those of a piece go to g[piece * stride + k], and gx.
struct PointwiseGradientSums {
  const float* src;  // null: not wanted
  ChannelAffine affine;
  double *g, *gx;
  int64_t stride;
};

// out[pixel][k] = act(bias[k] + sum over c of in[pixel][c] weight[c][k]), for the k of one panel:
// 1 or 2 channel blocks. The sum may come in several calls, each for some of the channels: all but
// the first `accumulate`, and only the last has a bias, clamps and streams.
struct PointwiseProduct {
  const float* in;           // first piece: [channel block][pixel][lane]
  int64_t in_block_stride;   // floats between channel blocks
  int64_t in_sample_stride;  // floats between pieces
  PointwiseFetch fetch;
  int64_t channels;          // summed over: without padding
  const float* weight;       // [channel][panel_blocks * lanes]
  const float* next_weight;  // what the next call will read: fetched meanwhile
  const float* bias;         // panel_blocks * lanes, or null
  int panel_blocks;
  int64_t outputs;  // k from the panel's first to the last of all, without padding
  float* out;
  int64_t out_block_stride, out_sample_stride;
  int64_t pieces, pixels;  // pixels per piece
  bool accumulate;         // add to what is in `out`
  bool clamp;              // out = min(max(out, low), high): the fused activation
  float low, high;
  bool stream;  // write around the caches; `out` is aligned to 64 bytes
  // The moments of each piece, if not null: mean[piece * moments_stride + k], and m2, as
  // BatchNormMoments defines them. One pass over deviations from the first pixel's value, in float.
  double *mean, *m2;
  int64_t moments_stride;
  PointwiseGradientSums sums;
};
RT_DECLARE_KERNEL(void PointwiseMultiply(const PointwiseProduct& product))

// The weights of one panel as PointwiseMultiply reads them: to[c][k], k < panel_blocks * lanes, is
// weight[k * k_stride + c * c_stride], one of the strides being 1, or zero for k >= outputs.
struct PointwisePanel {
  const float* weight;
  int64_t k_stride, c_stride;
  int64_t outputs, channels;
  int panel_blocks;
  float* to;
};
RT_DECLARE_KERNEL(void PointwisePack(const PointwisePanel& panel))

// sum[r][k] (+)= sum over pixels of rows[pixel][r] columns[pixel][k]
struct PointwiseGradientProduct {
  const float* rows;  // first piece: [channel block][pixel][lane]
  int64_t rows_block_stride, rows_sample_stride;
  int64_t row_channels;  // without padding
  const float* columns;
  int64_t columns_block_stride, columns_sample_stride;
  int64_t column_blocks;
  PointwiseFetch fetch_rows, fetch_columns;
  int64_t pieces, pixels;
  float* sum;          // [r, in whole channel blocks][k]
  int64_t sum_stride;  // floats between rows
  bool accumulate;     // add to what is there
};
RT_DECLARE_KERNEL(void PointwiseMultiplyGradient(const PointwiseGradientProduct& product))

// to[lane] = sum over pixels of blob[pixel][lane]
RT_DECLARE_KERNEL(void PointwiseSumPixels(const float* blob, int64_t pixels, float* to))

RT_DECLARE_KERNEL(int64_t PointwiseLanes())
// Pixels at a time of PointwiseMultiply: pieces should be multiples of it.
RT_DECLARE_KERNEL(int64_t PointwisePixelGroup())

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_POINTWISE_H_
