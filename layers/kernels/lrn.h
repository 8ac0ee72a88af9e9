// Local response normalization on one tile: all channels of 16 positions, a row per channel.
//
//   s[c] = k + alpha / size * sum of src[j]^2 over the window |j - c| <= half
//   dst[c] = src[c] s[c]^-beta
//   ratio[c] = diff_dst[c] src[c] s[c]^(-beta - 1)
//   diff_src[c] = diff_dst[c] s[c]^-beta
//                 - 2 alpha beta / size * src[c] * sum of ratio[j] over the window
//
// A row is kLrnTile floats. Rows -half .. -1 and channels .. channels + half - 1 of src and ratio
// must exist and be zero, so that the window needs no test for the edges.
// See core/kernel_isa.h for how this is compiled and called.
#ifndef RINGTAIL_LAYERS_KERNELS_LRN_H_
#define RINGTAIL_LAYERS_KERNELS_LRN_H_

#include <cstdint>

#include "core/kernel_isa.h"
#include "core/kernels/bfloat16.h"

namespace ringtail {

constexpr int64_t kLrnTile = 16;  // positions: one AVX-512 register

struct LrnShape {
  int64_t channels;
  int64_t half;  // of the window, without its centre
  float scale;   // alpha / size
  float beta;
  float k;
};

RT_DECLARE_KERNEL(void LrnForwardTile(const LrnShape& shape, const float* src, float* dst))

// diff holds diff_dst and becomes diff_src.
RT_DECLARE_KERNEL(void LrnBackwardTile(const LrnShape& shape, const float* src, float* ratio,
                                       float* diff))

// Between a blob (channels in blocks; `plane` positions; `data` at the tile's first position) and
// the rows of a tile; `positions` (1 to 16) of them are there, the rest of a row reads as zero and
// is not written. Element: float or Bfloat16.
RT_DECLARE_KERNEL(template <typename Element>
                  void LoadLrnTile(const Element* data, int64_t channels, int64_t block,
                                   int64_t plane, int64_t positions, float* tile))
RT_DECLARE_KERNEL(template <typename Element> void StoreLrnTile(const float* tile, int64_t channels,
                                                                int64_t block, int64_t plane,
                                                                int64_t positions, Element* data))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_LRN_H_
