// The gradient of the filters of a 3x3 convolution of stride 1, by Winograd's minimal filtering:
//
//   src --B^T d B--> V [slice][channel block][tile][lane]
//   diff_dst --A dy A^T--> Z [slice][block of k][tile][lane]
//   dU[slice] = V[slice]^T x Z[slice]           sums over tiles: the work
//   dU --G^T du G--> diff_weight (K, C, 3, 3), plain
//
// V and Z exist for one block of tiles at a time; threads share them. How threads divide the
// products depends on the size of dU, which is 4 times that of the weights:
//   small   by (slice, block of c), so that even a few channels give work to many threads
//   large   by (block of c, part of k), all slices of which a thread transforms back at once, while
//           they are in its cache
// A result is one sum over tiles in order: the same bits either way, and for every number of
// threads.
// Operand: what V and Z are held in; Bfloat16 as in winograd_data.h, in pairs of tiles. dU is f32.
// Source: Lavin & Gray 2016.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_WEIGHTS_H_
#define RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_WEIGHTS_H_

#include <cstddef>
#include <cstdint>

#include "core/kernels/bfloat16.h"
#include "layers/convolution/winograd/winograd_problem.h"
#include "layers/scratch_layout.h"

namespace ringtail {

template <typename Operand>
class WinogradWeights {
 public:
  // Requires problem.IsSupported(), for Bfloat16 SupportsBf16(). `threads`: what NumComputeThreads() will be at most.
  WinogradWeights(const WinogradProblem& problem, int threads);

  size_t scratch_bytes() const { return scratch_.bytes(); }
  // affine: the map of src that was convolved. Overwrites diff_weight and diff_bias (null: none).
  // scratch: 64-byte aligned.
  void Run(const float* src, const ChannelAffine& affine, const float* diff_dst, float* diff_weight,
           float* diff_bias, std::byte* scratch) const;

 private:
  struct Buffers {
    double* bias;  // sums of diff_dst, (K)
    Operand *v, *z;
    float* du;
  };
  Buffers Split(std::byte* scratch) const;
  void Transform(const float* src, const ChannelAffine& affine, const float* diff_dst,
                 int64_t first, int64_t last, const Buffers& buffers) const;
  void RunBySlices(const Buffers& buffers, int64_t tiles, bool accumulate) const;
  void RunByFilters(const Buffers& buffers, int64_t tiles, bool first, bool last,
                    float* diff_weight) const;
  // One slice of dU: block `c` of the inputs, blocks [k, k_end) of the outputs. `du` has the first.
  void Multiply(const Buffers& buffers, int64_t slice, int64_t c, int64_t k, int64_t k_end,
                int64_t tiles, bool accumulate, float* du) const;
  void TransformBack(const float* du, int64_t c, int64_t k, int64_t k_end,
                     float* diff_weight) const;

  int64_t SliceOfV() const;
  int64_t SliceOfZ() const;
  int64_t SliceOfDu() const;  // of one block of c and one part of k
  int64_t SizeOfDu() const { return slices_ * SliceOfDu(); }
  int64_t Items() const { return channel_blocks_ * k_parts_; }

  int tile_;
  int64_t slices_, lanes_, threads_;
  int64_t channels_, channel_blocks_, outputs_, output_blocks_;
  WinogradGrid input_, gradient_;
  int64_t tiles_, block_tiles_;
  bool by_filters_;
  int64_t k_parts_, part_blocks_;  // outputs in parts of so many blocks
  int64_t du_count_;  // dU's that exist at a time: of all items, or of those that threads work on
  ScratchLayout scratch_;
  size_t bias_at_, v_at_, z_at_, du_at_;  // offsets in scratch
};

extern template class WinogradWeights<float>;
extern template class WinogradWeights<Bfloat16>;

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_WEIGHTS_H_
