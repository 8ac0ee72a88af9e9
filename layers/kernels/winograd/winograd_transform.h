// Winograd's transforms of whole rows of tiles, for layers/convolution/. `tile` is the m of F(m,
// 3): 2 or 4; n = m + 2. Tensors of activations are blocked by the lanes of the instruction set (16
// for AVX-512, else 8): one call works on one block of channels.
//
// A transformed tile is n x n slices; slice s of tile t lies at  base + s * slice_stride + t *
// lanes so that a slice of many tiles is a matrix [tile][channel].
#ifndef RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_TRANSFORM_H_
#define RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_TRANSFORM_H_

#include <cstdint>

#include "core/kernel_isa.h"
#include "layers/kernels/affine.h"

namespace ringtail {

// How tiles lie on a plane of H x W pixels. Tile (ty, tx) of m x m outputs begins at row
// ty * m - pad_top, column tx * m - pad_left; what lies outside reads zero and is never written.
// Tile number t = (sample * tiles_y + ty) * tiles_x + tx.
struct WinogradGrid {
  int64_t H, W, pad_top, pad_left, tiles_y, tiles_x;
  int64_t sample_stride;  // elements from a channel block of one sample to that of the next
  bool bf16 =
      false;  // the plane holds Bfloat16 (core/kernels/bfloat16.h), though it comes as float*
};

// The bias that is added to each output, and the bounds that it is clamped to.
struct WinogradEpilogue {
  const float* bias;  // per lane; null: none
  float low, high;    // the fused activation
};

// B^T d B of tiles [first, last): v[0] belongs to tile `first`. d is the plane, or a map of it that
// is applied on the way; what lies outside is not mapped.
RT_DECLARE_KERNEL(void WinogradInput(int tile, const WinogradGrid& grid, const float* plane,
                                     const ChannelAffine& affine, int64_t first, int64_t last,
                                     float* v, int64_t slice_stride))
// A dy A^T; and sums[lane] += the sum of dy over these tiles.
RT_DECLARE_KERNEL(void WinogradGradient(int tile, const WinogradGrid& grid, const float* plane,
                                        int64_t first, int64_t last, float* z, int64_t slice_stride,
                                        double* sums))
// A^T m A, written to the pixels of the plane.
RT_DECLARE_KERNEL(void WinogradOutput(int tile, const WinogradGrid& grid, const float* m,
                                      int64_t slice_stride, int64_t first, int64_t last,
                                      const WinogradEpilogue& epilogue, float* plane))

// Convolutions of stride 2 (winograd_strided_matrices.h): a tile is 4 x 4 outputs, 8 x 8 pixels of
// src, 25 slices. Where there are phases they lie as winograd_slices.h says.
//
// Forward and backward-weights: src to V, tiles of 8; M to dst and diff_dst to Z, tiles of 4.
RT_DECLARE_KERNEL(void WinogradStridedInput(const WinogradGrid& grid, const float* plane,
                                            int64_t first, int64_t last, float* v,
                                            int64_t slice_stride, int64_t phase_stride))
RT_DECLARE_KERNEL(void WinogradStridedOutput(const WinogradGrid& grid, const float* m,
                                             int64_t slice_stride, int64_t first, int64_t last,
                                             const WinogradEpilogue& epilogue, float* plane))
RT_DECLARE_KERNEL(void WinogradStridedGradient(const WinogradGrid& grid, const float* plane,
                                               int64_t first, int64_t last, float* z,
                                               int64_t slice_stride, double* sums))
// Backward-data: diff_dst to V, tiles of 4; M to diff_src, tiles of 8.
RT_DECLARE_KERNEL(void WinogradStridedDiffDst(const WinogradGrid& grid, const float* plane,
                                              int64_t first, int64_t last, float* v,
                                              int64_t slice_stride))
RT_DECLARE_KERNEL(void WinogradStridedDiffSrc(const WinogradGrid& grid, const float* m,
                                              int64_t slice_stride, int64_t phase_stride,
                                              int64_t first, int64_t last,
                                              const WinogradEpilogue& epilogue, float* plane))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_TRANSFORM_H_
