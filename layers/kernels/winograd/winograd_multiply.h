// The matrix products between Winograd's transforms, where the time goes. They work on one slice
// (see winograd_transform.h); all arrays are blocked by the lanes of the instruction set.
#ifndef RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_MULTIPLY_H_
#define RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_MULTIPLY_H_

#include <cstdint>

#include "core/kernel_isa.h"

namespace ringtail {

// m[t][k] = sum over c of v[t][c] u[c][k], for `tiles` tiles and one panel of 1 or 2 blocks of k.
struct WinogradProduct {
  const float* v;          // [channel block][tile][lane]
  int64_t v_block_stride;  // floats between channel blocks
  int64_t channel_blocks;
  const float* u;    // [channel][panel_blocks * lanes]
  int panel_blocks;  // 1 or 2
  float* m;          // [block of k][tile][lane]
  int64_t m_block_stride;
  int64_t tiles;
};
RT_DECLARE_KERNEL(void WinogradMultiply(const WinogradProduct& product))

// du[c][k] (+)= sum over t of v[t][c] z[t][k], for one block of c and `k_blocks` blocks of k.
struct WinogradGradientProduct {
  const float* v;  // [tile][lane]: one channel block
  const float* z;  // [block of k][tile][lane]
  int64_t z_block_stride;
  int64_t k_blocks, tiles;
  float* du;          // [c][k]: `lanes` rows
  int64_t du_stride;  // floats between rows
  bool accumulate;    // add to what is there
};
RT_DECLARE_KERNEL(void WinogradMultiplyGradient(const WinogradGradientProduct& product))

// Tiles for which WinogradMultiply is at its best: numbers of tiles should be multiples of it.
RT_DECLARE_KERNEL(int64_t WinogradTileGroup())
RT_DECLARE_KERNEL(int64_t WinogradLanes())

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_MULTIPLY_H_
