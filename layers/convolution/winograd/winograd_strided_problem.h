// The common part of the three directions of a strided Winograd convolution.
// Thread-safety: a value type.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_STRIDED_PROBLEM_H_
#define RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_STRIDED_PROBLEM_H_

#include <cstdint>

#include "layers/convolution/convolution_algorithm.h"
#include "layers/kernels/winograd/winograd_transform.h"

namespace ringtail {

struct WinogradStridedProblem : ConvolutionProblem {
  static constexpr int64_t kSlices = 25, kPhases = 4;

  // 3x3, stride 2, dense, one group, padding of at most 1, and activations in blocks of this
  // machine's vectors that the channels fill.
  bool IsSupported() const;

  // The phases that have a given slice (layers/kernels/winograd/winograd_slices.h): `count` from
  // `first`.
  struct Phases {
    int64_t first, count;
  };
  static Phases PhasesOf(int64_t slice);

  // The tiles of 4 x 4 outputs, on src and on dst.
  WinogradGrid SrcGrid() const;
  WinogradGrid DstGrid() const;
  // The same for backward-data, whose tiles cover the 8 x 8 pixels of src that they write.
  WinogradGrid DiffSrcGrid() const;
  WinogradGrid DiffDstGrid() const;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_STRIDED_PROBLEM_H_
