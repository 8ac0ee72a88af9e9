// The gradient of the weights of a 1x1 convolution of stride 1, and that of its bias, from sums
// over pixels (pointwise_sums.h) whose tiles fit the second-level cache.
// A map of src (batch norm before) is applied to one run at a time, in the cache, while the next
// comes from memory.
// Cost: 2 N H W IC OC FLOPs; src and diff_dst are read once if there is one tile.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_WEIGHTS_H_
#define RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "layers/convolution/convolution_algorithm.h"
#include "layers/convolution/pixel_pieces.h"
#include "layers/convolution/pointwise/pointwise_sums.h"
#include "layers/scratch_layout.h"

namespace ringtail {

class PointwiseWeights : public ConvolutionAlgorithm {
 public:
  // `problem` is one that CreatePointwise takes, of stride 1.
  explicit PointwiseWeights(const ConvolutionProblem& problem);

  std::string name() const override { return "pointwise"; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }
  bool takes_affine() const override { return true; }
  void Run(const ConvolutionTensors& tensors) override;

 private:
  void SumTile(const ConvolutionTensors& tensors, int64_t slot, int64_t tile, float* buffer,
               float* sums) const;
  void SumBias(const float* diff_dst, float* sums, float* diff_bias) const;

  BlobDesc dst_;
  bool bias_;
  PointwiseSums sums_;
  PixelPieces pieces_;
  int64_t threads_, buffer_floats_;  // of a thread: src of a run and a tile, mapped
  ScratchLayout scratch_;
  size_t sums_at_, buffers_at_, bias_at_;  // offsets in scratch
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_WEIGHTS_H_
