// A 3x3 convolution of stride 1 by Winograd's minimal filtering F(m x m, 3 x 3), m = 2 or 4: in the
// forward direction, and as backward-data, which is the same sum over the output's gradient with
// every filter turned by 180 degrees and the roles of input and output channels exchanged.
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
// How the work is divided: where there are many tiles, each thread has its own and never waits for
// another; where there are few (the last stages of a net), threads share V and divide the panels of
// output channels. The result is the same to the bit either way, and for every number of threads.
// Source: Lavin & Gray 2016, "Fast Algorithms for Convolutional Neural Networks".
#ifndef RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_DATA_H_
#define RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_DATA_H_

#include <cstddef>
#include <cstdint>

#include "layers/kernels/winograd_filter.h"
#include "layers/kernels/winograd_transform.h"
#include "layers/convolution/winograd_problem.h"

namespace ringtail {

class WinogradData {
 public:
  enum class Direction { kForward, kBackwardData };

  // Requires problem.IsSupported(). `threads`: what NumComputeThreads() will be at most.
  WinogradData(const WinogradProblem& problem, Direction direction, int threads);

  size_t scratch_bytes() const;

  // weight: (K, C, 3, 3), plain. bias (null: none), low, high: what dst is clamped to (forward).
  // scratch: 64-byte aligned.
  void Run(const float* src, const float* weight, const float* bias, float low, float high,
           float* dst, std::byte* scratch) const;

 private:
  struct Buffers {
    float *u, *v, *m;
  };
  struct Call;  // the arguments of Run

  Buffers Split(std::byte* scratch, int64_t thread) const;
  void TransformFilters(const Call& call, float* u) const;
  void TransformInput(const Call& call, int64_t block, int64_t first, int64_t last,
                      float* v) const;
  void MultiplyPanel(const Call& call, const Buffers& buffers, int64_t panel, int64_t first,
                     int64_t last) const;
  void RunByTiles(const Call& call) const;
  void RunByPanels(const Call& call) const;

  int64_t PanelBlocks(int64_t panel) const;  // 2, or 1 for the last of an odd number
  int64_t PanelFloats() const;               // of U, per panel
  int64_t SliceOfU() const;                  // floats between slices of a panel of U
  int64_t SliceOfV() const;
  int64_t SliceOfM() const;

  int tile_;
  int64_t slices_, lanes_, threads_;
  int64_t channels_, channel_blocks_;  // summed over
  int64_t outputs_, output_blocks_, panels_;
  WinogradGrid input_, output_;
  WinogradFilters filters_;  // of one block of outputs
  int64_t filter_block_stride_;
  int64_t tiles_;       // in all
  int64_t block_tiles_;  // at a time
  bool by_panels_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_DATA_H_
