// Convolutions of images: few channels in f32 planes, bf16 products (vdpbf16ps), bf16 results. As in
// bf16_products.h only where HasBf16Products(), with its numerics.
//
//   line       a row of an image in bf16, [pixel][channel], with its padding; the taps of one row of a
//              filter at one pixel are adjacent in it: KW * channels numbers
//   expanded   a line for products over pixels: [block of 16 of those numbers][pair of pixels of dst]
//              [16][2], as bf16_products.h interleaves
#ifndef RINGTAIL_LAYERS_KERNELS_BF16_IMAGE_BF16_H_
#define RINGTAIL_LAYERS_KERNELS_BF16_IMAGE_BF16_H_

#include <cstdint>

#include "core/kernel_isa.h"
#include "core/kernels/bfloat16.h"

namespace ringtail {

constexpr int64_t kMostImageChannels = 4;
// What PackImageLine may write beyond the line's last number, and ExpandImageLine reads there.
constexpr int64_t kImageLineSlack = 64;

// `pixels` pixels of a row, `channels` planes plane_stride floats apart, to line[pixel][channel],
// rounded. Then up to kImageLineSlack numbers of no meaning.
RT_DECLARE_KERNEL(void PackImageLine(const float* row, int64_t plane_stride, int64_t channels,
                                     int64_t pixels, Bfloat16* line))

// dst[y][x][k] = act(bias[k] + sum over lines l and numbers i of
//                    in[(y * row_lines + l) * line_stride + x * pixel_step + i] weight[l][i][k])
// for the k of one panel, 1 or 2 channel blocks; summed in f32 and rounded once.
struct ImageBf16Product {
  const Bfloat16* in;
  int64_t line_stride;  // numbers
  int64_t row_lines;    // between rows of dst: the vertical stride
  int64_t pixel_step;   // numbers between pixels of dst
  int64_t lines,
      pairs;  // of a filter; numbers in pairs, the last of an odd number beside a weight of 0
  const Bfloat16* weight;  // [line][pair][panel_blocks * lanes][2]
  const float* bias;       // panel_blocks * lanes, or null
  int panel_blocks;
  bool clamp;
  float low, high;
  Bfloat16* dst;  // [block][row][pixel][lane]
  int64_t dst_block_stride;
  int64_t rows, columns;
  // Of what is written: the moments, as BatchNormMoments defines them; null: not wanted.
  double *mean, *m2;
};
RT_DECLARE_KERNEL(void ImageBf16Multiply(const ImageBf16Product& product))

// expanded[block * block_stride + pair * 32 + 2 r + i] = line[(2 pair + i) * pixel_step + 16 block + r],
// r < 16, i < 2. Requires 16 blocks + pixel_step <= 64.
RT_DECLARE_KERNEL(void ExpandImageLine(const Bfloat16* line, int64_t pixel_step, int64_t blocks,
                                       int64_t pairs, Bfloat16* expanded, int64_t block_stride))

// sums[lane] += the sum over pixels of blob[pixel][lane].
RT_DECLARE_KERNEL(void AddBf16Pixels(const Bfloat16* blob, int64_t pixels, double* sums))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_BF16_IMAGE_BF16_H_
