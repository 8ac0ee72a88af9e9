// Sums of products of bfloat16 numbers in f32, by the instruction for it (vdpbf16ps, AVX512-BF16):
// where HasBf16Products() says no, the others must not be called. The instruction multiplies pairs:
// of pixels or of channels, whichever are summed over.
//   interleaved  [pair of pixels][lane][2]; a last pixel without a partner is beside zeros
// Numerics: products are exact; each addition rounds to nearest even; subnormal numbers count as 0.
#ifndef RINGTAIL_LAYERS_KERNELS_BF16_BF16_PRODUCTS_H_
#define RINGTAIL_LAYERS_KERNELS_BF16_BF16_PRODUCTS_H_

#include <cstdint>

#include "core/kernel_isa.h"
#include "core/kernels/bfloat16.h"
#include "layers/kernels/affine.h"

namespace ringtail {

constexpr int64_t kBf16ProductLanes = 16;
constexpr int64_t kBf16ProductRows = 8;  // row_channels is a multiple of it

// sum[r][c] (+)= sum over pixels of rows[pixel][r] columns[pixel][c]
struct Bf16GradientProduct {
  const Bfloat16* rows;  // interleaved; one channel block after another
  int64_t rows_block_stride;
  int64_t row_channels;
  const Bfloat16* columns;
  int64_t columns_block_stride;
  int64_t column_blocks;
  int64_t pairs;
  float* sum;  // [row][column]
  int64_t sum_stride;
  bool accumulate;  // or overwrite
};

// out[pixel][k] = sum over c of in[pixel][c] weight[c][k], for the k of one panel: 1 or 2 blocks.
struct Bf16Product {
  const Bfloat16* in;       // [channel block][pixel][lane]
  int64_t in_block_stride;  // numbers between channel blocks
  int64_t channel_blocks;
  const Bfloat16* weight;  // [pair of channels][panel_blocks * lanes][2]
  int panel_blocks;
  float* out;                // [block of k][pixel][lane]
  int64_t out_block_stride;  // floats
  int64_t pixels;
};

RT_DECLARE_KERNEL(void MultiplyBf16(const Bf16Product& product))
RT_DECLARE_KERNEL(void MultiplyBf16Gradient(const Bf16GradientProduct& product))
// `pixels` pixels of one channel block, [pixel][lane], to (pixels + 1) / 2 interleaved pairs.
RT_DECLARE_KERNEL(void InterleaveBf16Pixels(const Bfloat16* from, int64_t pixels, Bfloat16* to))
// The same of affine(from), rounded to nearest even; a subnormal number becomes 0.
RT_DECLARE_KERNEL(void InterleaveMappedBf16Pixels(const Bfloat16* from, int64_t pixels,
                                                  const ChannelAffine& affine, Bfloat16* to))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_BF16_BF16_PRODUCTS_H_
