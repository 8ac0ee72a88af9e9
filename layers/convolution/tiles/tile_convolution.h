// The forward and the backward-data direction of a convolution on bf16 blobs, with products by
// tiles (AMX; kernels/bf16/bf16_tiles.h) or, where there are none, of pairs (vdpbf16ps;
// bf16_dot_tiles.h). Any window without dilation, any stride; one group.
//
//   a strip of rows, or a few images      packed as planes (tile_plane.h) in the second-level cache
//     x each pair of blocks of outputs    sums of all taps and channels, f32, 32 x 32 in registers
//                                         bias, activation, rounded once, to the blob
//
// Weights are rounded to bf16 while they are packed, a map of src (batch norm before) while that
// is. The moments of dst (batch norm after) are taken while it is written, and, with stride 1, the
// sums of diff_src for the batch norm before. diff_src is added to before the sum is rounded.
// Cost: 2 N OH OW C K KH KW FLOPs and those of the results at the ends of rows; the blobs are read
// and written once. Bits do not depend on threads.
// Thread-safety: as ConvolutionAlgorithm.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_TILES_TILE_CONVOLUTION_H_
#define RINGTAIL_LAYERS_CONVOLUTION_TILES_TILE_CONVOLUTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/kernels/bfloat16.h"
#include "layers/convolution/convolution_algorithm.h"
#include "layers/convolution/tiles/tile_plane.h"
#include "layers/convolution/tiles/tile_problem.h"
#include "layers/scratch_layout.h"

namespace ringtail {

class TileConvolution : public ConvolutionAlgorithm {
 public:
  // By the best unit of this machine; null unless IsForTiles (tile_problem.h).
  static std::unique_ptr<ConvolutionAlgorithm> Create(const ConvolutionProblem& problem,
                                                      ConvolutionDirection direction);

  // `direction`: kForward or kBackwardData; `unit`: one that this machine has.
  TileConvolution(const ConvolutionProblem& problem, ConvolutionDirection direction, Bf16Unit unit);

  std::string name() const override { return TileAlgorithmName(unit_); }
  size_t scratch_bytes() const override { return scratch_.bytes(); }
  bool takes_affine() const override { return forward_; }
  bool adds_to_diff_src() const override { return !forward_; }
  int64_t moments_pixels() const override { return forward_ ? rows_ * out_.W : 0; }
  int64_t gradient_sums_pixels() const override {
    return forward_ || phases_.size() > 1 ? 0 : rows_ * out_.W;
  }
  void Run(const ConvolutionTensors& tensors) override;

 private:
  struct Range {
    int64_t begin, end;
  };
  // Rows of results of one image, or all of those of several.
  struct Strip {
    int64_t sample, samples, row, rows;
  };
  // Results of one phase, with their packed weights and the places of their taps in a strip.
  struct Phase {
    const TileResults* results;
    std::vector<int64_t> taps;
    int64_t first_tile;  // of their weights
  };

  void DivideIntoStrips();
  Strip StripOf(int64_t index) const;
  void PackWeights(const float* weight, Bfloat16* to) const;
  const float* PackBias(const float* bias, float* to) const;
  void PackStrip(const ConvolutionTensors& tensors, const Strip& strip, Bfloat16* mapped,
                 Bfloat16* to) const;
  void PackRow(const Bfloat16* in, const ChannelAffine& affine, int64_t block, const TileRow& place,
               Bfloat16* mapped, Bfloat16* to) const;
  void MultiplyStrip(const ConvolutionTensors& tensors, const Strip& strip, const Range& panels,
                     const float* bias, const Bfloat16* packed, float* sums) const;
  void FinishStrip(const ConvolutionTensors& tensors, const Strip& strip, const Phase& phase,
                   int64_t sample, int64_t block, const float* bias, const float* sums) const;
  int64_t ImageNumbers() const;   // of a packed image of a strip
  int64_t SumFloats() const;      // of a block of outputs
  int64_t MappedNumbers() const;  // of a row of two blocks

  const Bf16Unit unit_;
  const Bf16UnitKernels kernels_;
  const bool forward_;
  const bool in_is_affine_;
  const Activation activation_;
  const BlobDesc in_, out_;
  const Window window_;
  const TilePlane plane_;
  std::vector<Phase> phases_;
  int64_t channel_blocks_;  // of 32
  int64_t panels_;          // pairs of blocks of outputs
  int64_t rows_ = 0, samples_ = 1, strips_ = 0;
  int64_t threads_;
  ScratchLayout scratch_;
  size_t weights_ = 0, bias_ = 0, strips_at_ = 0, mapped_ = 0, sums_ = 0;  // offsets in scratch
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_TILES_TILE_CONVOLUTION_H_
