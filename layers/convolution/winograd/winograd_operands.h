// The operands of Winograd's products: the kernels that make and multiply them, for float
// (kernels/winograd/winograd_transform.h, any blobs) and Bfloat16 (kernels/winograd/winograd_bf16.h:
// bf16 blobs, 2x2 tiles). Thread-safety: stateless.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_OPERANDS_H_
#define RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_OPERANDS_H_

#include <cstdint>

#include "core/kernels/bfloat16.h"
#include "layers/element_types/blob_elements.h"
#include "layers/kernels/bf16/bf16_products.h"
#include "layers/kernels/winograd/winograd_bf16.h"
#include "layers/kernels/winograd/winograd_filter.h"
#include "layers/kernels/winograd/winograd_multiply.h"
#include "layers/kernels/winograd/winograd_transform.h"

namespace ringtail {

template <typename Operand>
struct WinogradOperands;

// Panels, channel blocks, slices: as the kernels' structs say. Strides are in Operands, those of
// sums in floats.
template <>
struct WinogradOperands<float> {
  static constexpr int64_t kChannels = 1;  // of U that lie side by side
  static constexpr int64_t kTiles = 1;     // of V and Z of products over tiles, likewise

  static void Filter(int tile, const WinogradFilters& filters, const float* weight, float* u,
                     int64_t u_stride, int64_t slice_stride) {
    RT_KERNEL(WinogradFilter, tile, filters, weight, u, u_stride, slice_stride);
  }
  static void Input(int tile, const WinogradGrid& grid, const float* plane,
                    const ChannelAffine& affine, int64_t first, int64_t last, float* v,
                    int64_t slice_stride) {
    RT_KERNEL(WinogradInput, tile, grid, plane, affine, first, last, v, slice_stride);
  }
  // V of products over tiles.
  static void PairedInput(int tile, const WinogradGrid& grid, const float* plane,
                          const ChannelAffine& affine, int64_t first, int64_t last, float* v,
                          int64_t slice_stride) {
    Input(tile, grid, plane, affine, first, last, v, slice_stride);
  }
  static void Gradient(int tile, const WinogradGrid& grid, const float* plane, int64_t first,
                       int64_t last, float* z, int64_t slice_stride, double* sums) {
    RT_KERNEL(WinogradGradient, tile, grid, plane, first, last, z, slice_stride, sums);
  }
  static void Output(int tile, const WinogradGrid& grid, const float* m, int64_t slice_stride,
                     int64_t first, int64_t last, const WinogradEpilogue& epilogue, float* plane) {
    RT_KERNEL(WinogradOutput, tile, grid, m, slice_stride, first, last, epilogue, plane);
  }
  static void Multiply(const WinogradProduct& product) { RT_KERNEL(WinogradMultiply, product); }
  static void MultiplyGradient(const WinogradGradientProduct& product) {
    RT_KERNEL(WinogradMultiplyGradient, product);
  }
  using Product = WinogradProduct;
  using GradientProduct = WinogradGradientProduct;
};

template <>
struct WinogradOperands<Bfloat16> {
  static constexpr int64_t kChannels = 2;
  static constexpr int64_t kTiles = 2;

  static void Filter(int /*tile*/, const WinogradFilters& filters, const float* weight, Bfloat16* u,
                     int64_t u_stride, int64_t slice_stride) {
    RT_KERNEL(WinogradBf16Filter, filters, weight, u, u_stride, slice_stride);
  }
  static void Input(int /*tile*/, const WinogradGrid& grid, const float* plane,
                    const ChannelAffine& affine, int64_t first, int64_t last, Bfloat16* v,
                    int64_t slice_stride) {
    RT_KERNEL(WinogradBf16Input, grid, ElementsOf<Bfloat16>(plane), affine, first, last,
              {.at = v, .stride = slice_stride, .pairs = false});
  }
  static void PairedInput(int /*tile*/, const WinogradGrid& grid, const float* plane,
                          const ChannelAffine& affine, int64_t first, int64_t last, Bfloat16* v,
                          int64_t slice_stride) {
    RT_KERNEL(WinogradBf16Input, grid, ElementsOf<Bfloat16>(plane), affine, first, last,
              {.at = v, .stride = slice_stride, .pairs = true});
  }
  static void Gradient(int /*tile*/, const WinogradGrid& grid, const float* plane, int64_t first,
                       int64_t last, Bfloat16* z, int64_t slice_stride, double* sums) {
    RT_KERNEL(WinogradBf16Gradient, grid, ElementsOf<Bfloat16>(plane), first, last,
              {.at = z, .stride = slice_stride, .pairs = true}, sums);
  }
  static void Output(int /*tile*/, const WinogradGrid& grid, const float* m, int64_t slice_stride,
                     int64_t first, int64_t last, const WinogradEpilogue& epilogue, float* plane) {
    RT_KERNEL(WinogradBf16Output, grid, m, slice_stride, first, last, epilogue,
              ElementsOf<Bfloat16>(plane));
  }
  struct Product {
    const Bfloat16* v;
    int64_t v_block_stride, channel_blocks;
    const Bfloat16* u;
    int panel_blocks;
    float* m;
    int64_t m_block_stride, tiles;
  };
  static void Multiply(const Product& p) {
    RT_KERNEL(MultiplyBf16, {.in = p.v,
                             .in_block_stride = p.v_block_stride,
                             .channel_blocks = p.channel_blocks,
                             .weight = p.u,
                             .panel_blocks = p.panel_blocks,
                             .out = p.m,
                             .out_block_stride = p.m_block_stride,
                             .pixels = p.tiles});
  }
  struct GradientProduct {
    const Bfloat16 *v, *z;
    int64_t z_block_stride, k_blocks, tiles;
    float* du;
    int64_t du_stride;
    bool accumulate;
  };
  static void MultiplyGradient(const GradientProduct& p) {
    RT_KERNEL(MultiplyBf16Gradient, {.rows = p.v,
                                     .rows_block_stride = 0,  // one block
                                     .row_channels = kBf16ProductLanes,
                                     .columns = p.z,
                                     .columns_block_stride = p.z_block_stride,
                                     .column_blocks = p.k_blocks,
                                     .pairs = (p.tiles + 1) / 2,
                                     .sum = p.du,
                                     .sum_stride = p.du_stride,
                                     .accumulate = p.accumulate});
  }
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_OPERANDS_H_
