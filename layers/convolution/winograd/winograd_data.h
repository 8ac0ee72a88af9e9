// A 3x3 convolution of stride 1 by Winograd's minimal filtering F(m x m, 3 x 3), m = 2 or 4: in the
// forward direction, and as backward-data, which is the same sum over the output's gradient with
// every filter flipped in both directions and the roles of input and output channels exchanged.
//
//   src --B^T d B--> V [slice][channel block][tile][lane]
//   weight --G g G^T--> U [panel][slice][channel][panel lanes]
//   M[slice] = V[slice] x U[slice]             (m + 2)^2 matrix products: the work
//   M --A^T m A--> dst (+ bias, activation)
//
// A tile of m x m outputs costs (m + 2)^2 multiplications per pair of channels instead of 9 m^2:
// 4 times fewer for m = 4, 2.25 for m = 2. V and M exist for one block of tiles at a time, which
// stays in the cache.
//
// How the work is divided depends on where U fits:
//   small filters   U is made once and stays in the cache; each thread has tiles of its own, some
//                   at a time, and never waits for another.
//   large filters   (U would be 4 times the weights, up to 40 MB) threads share V of many tiles and
//                   divide the panels of output channels; U exists for one panel per thread.
// A result is one sum over channels in order, so it has the same bits either way, and for every
// number of threads.
//
// Operand: what V and U are held in. Bfloat16, with bf16 blobs and m = 2 alone, has half the bytes
// and twice the products (winograd_operands.h); sums and M are f32 either way.
// Source: Lavin & Gray 2016, "Fast Algorithms for Convolutional Neural Networks".
#ifndef RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_DATA_H_
#define RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_DATA_H_

#include <cstddef>
#include <cstdint>

#include "core/kernels/bfloat16.h"
#include "layers/convolution/winograd/winograd_problem.h"
#include "layers/kernels/winograd/winograd_filter.h"
#include "layers/kernels/winograd/winograd_transform.h"
#include "layers/scratch_layout.h"

namespace ringtail {

template <typename Operand>
class WinogradData {
 public:
  // Requires problem.IsSupported(), for Bfloat16 SupportsBf16(). `threads`: what NumComputeThreads() will be at most.
  WinogradData(const WinogradProblem& problem, ConvolutionDirection direction, int threads);

  size_t scratch_bytes() const { return scratch_.bytes(); }

  // affine: the map of src that is convolved. weight: (K, C, 3, 3), plain. bias (null: none), low,
  // high: what dst is clamped to (forward). scratch: 64-byte aligned.
  void Run(const float* src, const ChannelAffine& affine, const float* weight, const float* bias,
           float low, float high, float* dst, std::byte* scratch) const;

 private:
  struct Call;  // the arguments of Run

  void DivideWork();
  void TransformPanel(const Call& call, int64_t panel, Operand* u) const;
  void TransformPanels(const Call& call) const;  // all of them
  void TransformInput(const Call& call, int64_t block, int64_t first, int64_t last,
                      Operand* v) const;
  // Tiles [first, last) of one panel, of which v holds the first.
  void MultiplyPanel(const Call& call, int64_t panel, const Operand* u, const Operand* v,
                     int64_t first, int64_t last, float* m) const;
  // The same of a part of M: tiles [first, last), m_tiles_ or fewer.
  void MultiplyTiles(const Call& call, int64_t panel, const Operand* u, const Operand* v,
                     int64_t first, int64_t last, float* m) const;
  void RunByTiles(const Call& call) const;
  void RunByPanels(const Call& call) const;

  int64_t PanelBlocks(int64_t panel) const;  // 2, or 1 for the last of an odd number
  // Elements between slices of one panel of U, of V and of M; and all slices of each.
  int64_t SliceOfU() const;
  int64_t SliceOfV() const;
  int64_t SliceOfM() const;
  int64_t SizeOfU() const { return slices_ * SliceOfU(); }
  int64_t SizeOfV() const { return slices_ * SliceOfV(); }
  int64_t SizeOfM() const { return slices_ * SliceOfM(); }

  int tile_;
  int64_t slices_, lanes_, threads_;
  int64_t channels_, channel_blocks_;  // summed over
  int64_t outputs_, output_blocks_, panels_;
  WinogradGrid input_, output_;
  WinogradFilters filters_;  // of one block of outputs
  int64_t filter_block_stride_;
  int64_t tiles_;  // in total
  bool by_panels_;
  bool keeps_u_;               // all of it is made once; or a panel at a time, again for each V
  int64_t v_tiles_, m_tiles_;  // at a time
  ScratchLayout scratch_;
  size_t u_at_, v_at_, m_at_;  // offsets in scratch
};

extern template class WinogradData<float>;
extern template class WinogradData<Bfloat16>;

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_DATA_H_
