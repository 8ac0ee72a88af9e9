// The gradient of the filters of a 3x3 convolution of stride 2, by Winograd's minimal filtering of
// its phases (winograd_strided_data.h):
//
//   src --B^T d B--> V [slice][phase][channel block][tile][lane]
//   diff_dst --A dy A^T--> Z [slice][block of k][tile][lane]
//   dU[slice][phase] = V[slice][phase]^T x Z[slice]     sums over tiles: the work
//   dU --G^T du G--> diff_weight (K, C, 3, 3), plain
//
// Z serves all phases. V and Z exist for one block of tiles at a time; threads share them and
// divide dU by (block of c, part of k), whose 81 products they transform back at once.
// A result is one sum over tiles in order: the same bits for every number of threads.
// Source: Lavin & Gray 2016.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_STRIDED_WEIGHTS_H_
#define RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_STRIDED_WEIGHTS_H_

#include <cstddef>
#include <cstdint>

#include "layers/convolution/winograd/winograd_strided_problem.h"
#include "layers/scratch_layout.h"

namespace ringtail {

class WinogradStridedWeights {
 public:
  // Requires problem.IsSupported(). `threads`: what NumComputeThreads() will be at most.
  WinogradStridedWeights(const WinogradStridedProblem& problem, int threads);

  size_t scratch_bytes() const { return scratch_.bytes(); }
  // Overwrites diff_weight and diff_bias (null: none). scratch: 64-byte aligned.
  void Run(const float* src, const float* diff_dst, float* diff_weight, float* diff_bias,
           std::byte* scratch) const;

 private:
  struct Buffers {
    double* bias;  // sums of diff_dst, (K)
    float *v, *z, *du;
  };
  Buffers Split(std::byte* scratch) const;
  void Transform(const float* src, const float* diff_dst, int64_t first, int64_t last,
                 const Buffers& buffers) const;
  // All dU; `first` and `last`: whether these are the first and last tiles.
  void MultiplyAll(const Buffers& buffers, int64_t tiles, bool first, bool last,
                   float* diff_weight) const;
  // Block `c` of the inputs, blocks [k, k_end) of the outputs. `du` has the first.
  void Multiply(const Buffers& buffers, int64_t c, int64_t k, int64_t k_end, int64_t tiles,
                bool accumulate, float* du) const;
  void TransformBack(const float* du, int64_t c, int64_t k, int64_t k_end,
                     float* diff_weight) const;

  // Floats between phases and slices; those of dU are of one block of c and one part of k.
  int64_t PhaseOfV() const { return channel_blocks_ * block_tiles_ * lanes_; }
  int64_t PhaseOfDu() const { return lanes_ * part_blocks_ * lanes_; }
  int64_t SliceOfV() const;
  int64_t SliceOfZ() const;
  int64_t SliceOfDu() const;
  int64_t SizeOfDu() const { return WinogradStridedProblem::kSlices * SliceOfDu(); }
  int64_t Items() const { return channel_blocks_ * k_parts_; }

  int64_t lanes_, threads_;
  int64_t channels_, channel_blocks_, outputs_, output_blocks_;
  WinogradGrid input_, gradient_;
  int64_t tiles_, block_tiles_;
  int64_t k_parts_, part_blocks_;  // outputs in parts of so many blocks
  int64_t du_count_;  // dU's that exist at a time: of all items, or of those that threads work on
  ScratchLayout scratch_;
  size_t bias_at_, v_at_, z_at_, du_at_;  // offsets in scratch
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_STRIDED_WEIGHTS_H_
