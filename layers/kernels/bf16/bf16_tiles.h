// Matrix products of bfloat16 numbers by tiles (AMX: tdpbf16ps): 16 pixels x 32 channels times 32
// channels x 16 outputs, 8,192 multiply-adds in one instruction. Only where HasBf16Tiles()
// (layers/convolution/tiles/has_tiles.h), between BeginBf16Tiles and EndBf16Tiles of the same thread.
//   packed pixels   [block of 32 channels][pixel][32]
//   weight tiles    [block of 16 outputs][block of 32 channels][tap], each [pair of channels][16][2]
// Numerics: products are exact; each addition to the f32 sum rounds to nearest even; subnormal numbers
// count as 0. A pixel's sum depends on no other pixel.
// Source: Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter "Intel AMX".
#ifndef RINGTAIL_LAYERS_KERNELS_BF16_BF16_TILES_H_
#define RINGTAIL_LAYERS_KERNELS_BF16_BF16_TILES_H_

#include <cstdint>

#include "core/kernel_isa.h"
#include "core/kernels/bfloat16.h"
#include "layers/kernels/affine.h"

namespace ringtail {

constexpr int64_t kTilePixels = 16, kTileOutputs = 16, kTileChannels = 32;
constexpr int64_t kTileNumbers = kTileChannels * kTileOutputs;  // of weights

RT_DECLARE_KERNEL(void BeginBf16Tiles())
RT_DECLARE_KERNEL(void EndBf16Tiles())

// out[block][pixel][k] = sum over taps t and channels c of
// in[taps[t] + pixel pixel_step + c] weight[t][c][k].
// Reads up to kTilePixels - 1 pixels beyond `pixels`, of any value, and writes as many results.
struct Bf16TileProduct {
  const Bfloat16* in;
  int64_t pixel_step;  // numbers between pixels: kTileChannels of packed ones
  int64_t in_block_stride;
  int64_t channel_blocks;  // of 32
  const int64_t* taps;     // numbers from `in`
  int64_t tap_count;
  const Bfloat16* weight;  // tiles of the first block of outputs
  int out_blocks;          // 1 or 2
  int64_t pixels;
  float* out;  // [block][pixel][16]
  int64_t out_block_stride;
};
RT_DECLARE_KERNEL(void MultiplyBf16Tiles(const Bf16TileProduct& product))

// Pixels of two channel blocks of 16, `step` numbers apart, side by side: to[pixel][32]. Null
// `second`: zeros.
RT_DECLARE_KERNEL(void PackTilePixels(const Bfloat16* first, const Bfloat16* second, int64_t step,
                                      int64_t pixels, Bfloat16* to))
RT_DECLARE_KERNEL(void ZeroTilePixels(int64_t pixels, Bfloat16* to))

// The tile of one block of outputs, one of channels and a tap, rounded: weight[k * k_stride +
// c * c_stride], zero for k >= outputs or c >= channels.
struct Bf16TileWeights {
  const float* weight;
  int64_t k_stride, c_stride;
  int64_t outputs, channels;  // that are there
  Bfloat16* to;
};
RT_DECLARE_KERNEL(void PackTileWeights(const Bf16TileWeights& weights))

// to[row][pixel] = act(from[row][pixel] + bias (+ to[row][pixel])), rounded to nearest even (a
// subnormal number becomes 0).
struct Bf16TileRows {
  const float* from;  // [row][pixel][16]
  int64_t from_row_stride;
  Bfloat16* to;
  int64_t to_row_stride, to_pixel_stride;
  int64_t rows, columns;
  const float* bias;  // 16, or null
  bool add;
  bool clamp;
  float low, high;
  // Of what is written: the moments, as BatchNormMoments defines them; null: not wanted.
  double *mean, *m2;
  // Of what is written, where pixels are adjacent: the sums of batch norm's backward, whose src lies
  // as `to`; null src: not wanted.
  struct GradientSums {
    const Bfloat16* src = nullptr;
    ChannelAffine affine;  // of these channels
    double *g = nullptr, *gx = nullptr;
  } sums;
};
RT_DECLARE_KERNEL(void FinishTileRows(const Bf16TileRows& rows))

// Sums over pixels, for gradients of weights, and any product of linear layers (what a number of theirs
// is: linear/linear_bf16.h): sums[i][j][r][c] (+)= sum over pixels of
// rows[i][r][pixel] columns[j][pixel][c], tiles of 16 x 16.
//   transposed    [block of 16 channels][channel][pixel], rows row_stride numbers apart
//   interleaved   [block of 16 channels][pair of pixels][channel][2] (bf16_products.h)
struct Bf16TileGradient {
  const Bfloat16* rows;  // transposed
  int64_t rows_block_stride, row_stride;
  const Bfloat16* columns;  // interleaved
  int64_t columns_block_stride;
  int row_blocks, column_blocks;  // 1 or 2
  int64_t groups;                 // of 32 pixels
  float* sums;
  int64_t sums_row_stride, sums_column_stride;  // floats between tiles
  bool accumulate;                              // or overwrite
};
RT_DECLARE_KERNEL(void MultiplyBf16TileGradient(const Bf16TileGradient& product))

// The sums of several slots, tile by tile, as weights: weight[k * k_stride + c * tap_count + tap] =
// sum over slots s, in their order, of sums[s][tap][r][col], where a tile's rows are outputs k and its
// columns channels c, or the other way round.
struct Bf16TileSums {
  const float* sums;  // [tap][16][16] of slot 0
  int64_t slots, slot_stride;
  int64_t tap_count;
  bool rows_are_outputs;
  int64_t outputs, channels;  // that are there, at most 16
  float* weight;
  int64_t k_stride;
};
RT_DECLARE_KERNEL(void AddTileSums(const Bf16TileSums& sums))

// Pixels of a channel block of 16, `step` numbers apart: to[pixel][16].
RT_DECLARE_KERNEL(void CopyTilePixels(const Bfloat16* from, int64_t step, int64_t pixels,
                                      Bfloat16* to))
// from[pixel][16] to to[channel * row_stride + pixel]; `pixels` is a multiple of 16.
RT_DECLARE_KERNEL(void TransposeTilePixels(const Bfloat16* from, int64_t pixels, int64_t row_stride,
                                           Bfloat16* to))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_BF16_BF16_TILES_H_
