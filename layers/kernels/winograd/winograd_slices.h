// The places of the values of a transformed tile: in slices, of which each is a matrix of many
// tiles (see winograd_transform.h). Only for layers/kernels/*.cc.
#ifndef RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_SLICES_H_
#define RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_SLICES_H_

#include <cstdint>

#include "layers/kernels/winograd/winograd_strided_matrices.h"

namespace ringtail::RT_KERNEL_ISA {

// kSide x kSide values, a slice for each.
template <int kSide>
struct DenseSlices {
  int64_t stride;
  int64_t operator()(int i, int j) const { return (i * kSide + j) * stride; }
};

// The 9 x 9 values of a strided convolution's phases: rows and columns 0 to 4 belong to the phase
// of two taps (5 points), 5 to 8 to that of one tap (without infinity). The values of all phases at
// the same points are summed, and so make one of 5 x 5 slices. The phases lie in such an order,
//
//   0: two taps in rows, one in columns   1: two, two   2: one, two   3: one, one
//
// that every slice has a contiguous run of them: (4, 4), at infinity twice, 1; (4, j) 0 and 1;
// (i, 4) 1 and 2; the others all four.
struct PhasedSlices {
  int64_t stride, phase_stride;
  int64_t operator()(int i, int j) const {
    constexpr int kPoints = WinogradStrided::kPoints;
    const bool one_row = i >= kPoints, one_column = j >= kPoints;
    const int slice = (one_row ? i - kPoints : i) * kPoints + (one_column ? j - kPoints : j);
    const int phase = one_row ? (one_column ? 3 : 2) : (one_column ? 0 : 1);
    return slice * stride + phase * phase_stride;
  }
};

}  // namespace ringtail::RT_KERNEL_ISA

#endif  // RINGTAIL_LAYERS_KERNELS_WINOGRAD_WINOGRAD_SLICES_H_
