// The common part of the three directions of a Winograd convolution. Thread-safety: a value type.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_PROBLEM_H_
#define RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_PROBLEM_H_

#include <cstdint>

#include "layers/convolution/convolution_algorithm.h"
#include "layers/element_types/blob_elements.h"
#include "layers/kernels/winograd/winograd_transform.h"

namespace ringtail {

// A channel block of the blob that the grid's planes belong to. `Blob`: float or const float.
template <typename Blob>
Blob* WinogradPlane(const WinogradGrid& grid, Blob* blob, int64_t block, int64_t lanes) {
  return ElementAt(grid.bf16 ? BlobType::kBf16 : BlobType::kF32, blob,
                   block * grid.H * grid.W * lanes);
}

struct WinogradProblem : ConvolutionProblem {
  int tile = 4;  // m of F(m x m, 3 x 3): 2 or 4

  // 3x3, stride 1, dense, one group, padding of at most 2, and activations in blocks of this
  // machine's vectors that the channels fill.
  bool IsSupported() const;
  // And 2x2 tiles of bf16 blobs, on a machine that multiplies bf16.
  bool SupportsBf16() const;

  int64_t slices() const { return (tile + 2) * (tile + 2); }
  // Tiles that cover a plane of `of`, whose rows begin `pad_top` and `pad_left` before `at`'s.
  WinogradGrid Grid(const BlobDesc& at, int64_t pad_top, int64_t pad_left,
                    const BlobDesc& of) const;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_PROBLEM_H_
