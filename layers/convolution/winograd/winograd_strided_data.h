// A 3x3 convolution of stride 2, forward and backward-data, by Winograd's minimal filtering of its
// phases: layers/kernels/winograd/winograd_strided_matrices.h explains it. Rows and columns of even
// and of odd number make four phases of src, convolved with 2x2, 2x1, 1x2 and 1x1 taps of the
// filter.
//
//   forward         src --> V, four phases;  diff_dst --> V, one             backward-data
//   M[slice] = sum over phases of V x U      M[slice][phase] = V[slice] x U[slice][phase]
//   M --> dst (+ bias, activation)           M, four phases --> diff_src
//
//   V [slice][group of tiles][phase][channel block][tile][lane], read in this order: a stream
//   U [slice][phase][channel][panel lanes], for one panel of output channels
//   M [slice][phase][block of the panel][tile][lane]
//
// A tile of 4x4 outputs (8x8 pixels of src) costs 81 multiplications per pair of channels instead
// of 144: 1.78 times fewer. Threads share V of many tiles and divide the panels; U, 9 times larger
// than the filters that it is made from, exists for one panel per thread.
// A result is one sum over channels (and phases) in order: the same bits for every number of
// threads.
// Source: Lavin & Gray 2016, "Fast Algorithms for Convolutional Neural Networks".
#ifndef RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_STRIDED_DATA_H_
#define RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_STRIDED_DATA_H_

#include <cstddef>
#include <cstdint>

#include "layers/convolution/winograd/winograd_strided_problem.h"
#include "layers/kernels/winograd/winograd_filter.h"
#include "layers/scratch_layout.h"

namespace ringtail {

class WinogradStridedData {
 public:
  enum class Direction { kForward, kBackwardData };

  // Requires problem.IsSupported(). `threads`: what NumComputeThreads() will be at most.
  WinogradStridedData(const WinogradStridedProblem& problem, Direction direction, int threads);

  size_t scratch_bytes() const { return scratch_.bytes(); }

  // weight: (K, C, 3, 3), plain. bias (null: none), low, high: what dst is clamped to (forward).
  // scratch: 64-byte aligned.
  void Run(const float* src, const float* weight, const float* bias, float low, float high,
           float* dst, std::byte* scratch) const;

 private:
  struct Call;  // the arguments of Run

  void TransformInput(const Call& call, int64_t block, int64_t first, int64_t last, float* v) const;
  void TransformPanel(const Call& call, int64_t panel, float* u) const;
  // Tiles [first, last) of one panel, of which v holds the first.
  void MultiplyPanel(int64_t panel, const float* u, const float* v, int64_t tiles, float* m) const;
  void TransformOutput(const Call& call, int64_t panel, const float* m, int64_t first,
                       int64_t last) const;
  void RunPanel(const Call& call, int64_t panel, const float* v, int64_t first, int64_t last,
                float* u, float* m) const;

  int64_t PanelBlocks(int64_t panel) const;  // 2, or 1 for the last of an odd number
  // Floats between phases, groups and slices; and all slices.
  int64_t PhaseOfU(int64_t panel) const { return channels_ * PanelBlocks(panel) * lanes_; }
  int64_t PhaseOfV() const { return channel_blocks_ * group_ * lanes_; }
  int64_t PhaseOfM() const;
  int64_t GroupOfV() const;
  int64_t SliceOfU() const;
  int64_t SliceOfV() const;
  int64_t SliceOfM() const;
  int64_t SizeOfU() const { return WinogradStridedProblem::kSlices * SliceOfU(); }
  int64_t SizeOfV() const { return WinogradStridedProblem::kSlices * SliceOfV(); }
  int64_t SizeOfM() const { return WinogradStridedProblem::kSlices * SliceOfM(); }

  bool forward_;
  int64_t lanes_, group_, threads_;    // group_: tiles that one product takes at a time
  int64_t channels_, channel_blocks_;  // summed over
  int64_t output_blocks_, panels_;
  WinogradGrid input_, output_;
  WinogradFilters filters_;    // of one block of outputs
  int64_t tiles_;              // in total
  int64_t v_tiles_, m_tiles_;  // at a time
  ScratchLayout scratch_;
  size_t u_at_, v_at_, m_at_;  // offsets in scratch
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WINOGRAD_STRIDED_DATA_H_
