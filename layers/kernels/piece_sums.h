// What products of pixels take for the batch norms beside them while a piece of their result is in
// registers: moments, and the sums of batch norm's backward. Only for layers/kernels/*.cc.
#ifndef RINGTAIL_LAYERS_KERNELS_PIECE_SUMS_H_
#define RINGTAIL_LAYERS_KERNELS_PIECE_SUMS_H_

#include <cstdint>

#include "layers/kernels/vec_affine.h"
#include "layers/kernels/vec_bfloat16.h"

namespace ringtail::RT_KERNEL_ISA {

constexpr int kPanel = 2;  // blocks of output channels at a time

// Moments of a piece, block by block of the panel, from deviations from `shift`, the value of the
// first pixel, so that squares do not cancel where a mean is far from zero.
struct PieceMoments {
  Vec shift[kPanel], sum[kPanel] = {}, squares[kPanel] = {};
  bool empty = true;

  template <int kRows>
  [[gnu::always_inline]] void Add(int x, const Vec (&out)[kRows]) {
    if (empty) shift[x] = out[0];
    Vec sums[2] = {sum[x]}, more[2] = {squares[x]};  // two chains
#pragma GCC unroll 14
    for (int row = 0; row < kRows; ++row) {
      const Vec d = out[row] - shift[x];
      sums[row % 2] += d;
      more[row % 2] += d * d;
    }
    sum[x] = sums[0] + sums[1];
    squares[x] = more[0] + more[1];
  }

  [[gnu::always_inline]] void Write(int blocks, int64_t pixels, double* mean, double* m2) const {
    const double count = static_cast<double>(pixels);
    for (int i = 0; i < blocks * kLanes; ++i) {
      const double d = sum[i / kLanes][i % kLanes], dd = squares[i / kLanes][i % kLanes];
      mean[i] = shift[i / kLanes][i % kLanes] + d / count;
      const double spread = dd - d * d / count;
      m2[i] = spread < 0 ? 0 : spread;  // NaN passes through
    }
  }
};

// The same for the sums of batch norm's backward. `src` lies as the result, blocks of the panel
// block_stride elements apart.
struct PieceSums {
  VecGradientSums block[kPanel];

  // `src` comes from memory, or at best from the second-level cache, while the product is computed.
  template <int kRows, typename Element>
  [[gnu::always_inline]] static void Fetch(const Element* src, int64_t block_stride, int vecs) {
    constexpr int kRowsOfLine = sizeof(Vec) / sizeof(Element) / kLanes;
    for (int x = 0; x < vecs; ++x) {
#pragma GCC unroll 14
      for (int row = 0; row < kRows; row += kRowsOfLine) {
        __builtin_prefetch(src + x * block_stride + row * kLanes);
      }
    }
  }

  // `map`: of the panel's channels. `src`: of block x.
  template <int kRows, typename Element>
  [[gnu::always_inline]] void Add(const ChannelAffine& map, int x, const Element* src,
                                  const Vec (&out)[kRows]) {
    const int64_t c = x * kLanes;
    const VecAffine affine({map.mean + c, map.scale + c, map.bias + c, map.low, map.high});
    VecGradientSums sums[2] = {block[x], {}};  // two chains
#pragma GCC unroll 14
    for (int row = 0; row < kRows; ++row) {
      sums[row % 2].Add(affine, Load(src + row * kLanes), out[row]);
    }
    sums[0].Add(sums[1]);
    block[x] = sums[0];
  }

  [[gnu::always_inline]] void Write(int blocks, double* g, double* gx) const {
    for (int x = 0; x < blocks; ++x) {
      for (int i = 0; i < kLanes; ++i) {
        g[x * kLanes + i] = block[x].g[i];
        gx[x * kLanes + i] = block[x].gx[i];
      }
    }
  }
};

}  // namespace ringtail::RT_KERNEL_ISA

#endif  // RINGTAIL_LAYERS_KERNELS_PIECE_SUMS_H_
