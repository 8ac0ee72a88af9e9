// Winograd's F(2x2, 3x3) with operands of the products in bfloat16: the transforms of bf16 blobs
// are computed in f32 and rounded once; the products, by vdpbf16ps (bf16/bf16_products.h), are summed in
// f32. As there, only where HasBf16Products(). Names and layouts as in winograd_transform.h, but for
// the operands:
//
//   V of products over channels   slice, [tile][lane]
//   V, Z of products over tiles   slice, [tile / 2][lane][2]; a last tile without a partner is
//                                 beside zeros
//   U                             slice, [pair of channels][panel lanes][2]
//
// Numerics: what is rounded here (V, Z, U and dst) is rounded to nearest even, but subnormal numbers
// become 0. Against double precision: 3.3e-3 to 4.6e-3 of the result's Euclidean norm; direct
// convolution with rounded weights has 2.4e-3, for the gradient of weights less than 1e-6
// (layers/convolution/README.md).
#ifndef RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_BF16_H_
#define RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_BF16_H_

#include <cstdint>

#include "core/kernel_isa.h"
#include "core/kernels/bfloat16.h"
#include "layers/kernels/winograd/winograd_filter.h"
#include "layers/kernels/winograd/winograd_transform.h"

namespace ringtail {

// Where V or Z goes: slice s at `at + s * stride`, the first tile that is transformed at its begin.
struct WinogradBf16Slices {
  Bfloat16* at;
  int64_t stride;
  bool pairs;  // of tiles, as products over tiles read them
};

// B^T d B; grid.bf16.
RT_DECLARE_KERNEL(void WinogradBf16Input(const WinogradGrid& grid, const Bfloat16* plane,
                                         const ChannelAffine& affine, int64_t first, int64_t last,
                                         const WinogradBf16Slices& v))
// A dy A^T; and sums[lane] += the sum of dy over these tiles.
RT_DECLARE_KERNEL(void WinogradBf16Gradient(const WinogradGrid& grid, const Bfloat16* plane,
                                            int64_t first, int64_t last,
                                            const WinogradBf16Slices& z, double* sums))
// A^T m A, m in f32, written to the pixels of the plane.
RT_DECLARE_KERNEL(void WinogradBf16Output(const WinogradGrid& grid, const float* m,
                                          int64_t slice_stride, int64_t first, int64_t last,
                                          const WinogradEpilogue& epilogue, Bfloat16* plane))
// G g G^T: slice s of channel pair p goes to u + s * slice_stride + p * u_stride.
RT_DECLARE_KERNEL(void WinogradBf16Filter(const WinogradFilters& filters, const float* weight,
                                          Bfloat16* u, int64_t u_stride, int64_t slice_stride))

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_BF16_H_
