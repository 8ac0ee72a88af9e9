// The gradient of the filters of a 3x3 convolution of stride 1, by Winograd's minimal filtering:
//
//   src --B^T d B--> V [slice][channel block][tile][lane]
//   diff_dst --A dy A^T--> Z [slice][block of k][tile][lane]
//   dU[slice] = V[slice]^T x Z[slice]           sums over tiles: the work
//   dU --G^T du G--> diff_weight (K, C, 3, 3), plain
//
// Threads share V and Z of one block of tiles and divide (slice, channel block) pairs, each of which
// one thread sums over all tiles in order: the result is the same for every number of threads.
// Source: Lavin & Gray 2016.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WEIGHTS_H_
#define RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WEIGHTS_H_

#include <cstddef>
#include <cstdint>

#include "layers/convolution/winograd_problem.h"

namespace ringtail {

class WinogradWeights {
 public:
  // Requires problem.IsSupported().
  explicit WinogradWeights(const WinogradProblem& problem);

  size_t scratch_bytes() const;
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
  void Multiply(const float* v, const float* z, int64_t tiles, bool accumulate, float* du) const;
  void TransformBack(const float* du, float* diff_weight) const;

  int64_t SliceOfV() const;
  int64_t SliceOfZ() const;
  int64_t SliceOfDu() const;  // of one channel block

  int tile_;
  int64_t slices_, lanes_;
  int64_t channels_, channel_blocks_, outputs_, output_blocks_;
  WinogradGrid input_, gradient_;
  int64_t tiles_, block_tiles_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_WINOGRAD_WEIGHTS_H_
