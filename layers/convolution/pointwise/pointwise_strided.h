// A 1x1 convolution of a larger stride: the pixels of src that it reads, gathered in scratch, make
// a convolution of stride 1. Backward-data spreads that one's result out; all else is zero.
// Cost: that of stride 1, one pass over the pixels read and, backward-data, over all of diff_src.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_STRIDED_H_
#define RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_STRIDED_H_

#include <cstddef>
#include <memory>
#include <string>

#include "layers/convolution/convolution_algorithm.h"
#include "layers/scratch_layout.h"

namespace ringtail {

class PointwiseStrided : public ConvolutionAlgorithm {
 public:
  // `dense` computes DenseProblem(problem) in the same direction.
  PointwiseStrided(const ConvolutionProblem& problem, ConvolutionDirection direction,
                   std::unique_ptr<ConvolutionAlgorithm> dense);

  // The convolution of stride 1 over the gathered pixels.
  static ConvolutionProblem DenseProblem(const ConvolutionProblem& problem);

  std::string name() const override { return dense_->name(); }
  size_t scratch_bytes() const override { return scratch_.bytes(); }
  bool takes_affine() const override { return dense_->takes_affine(); }
  int64_t moments_pixels() const override { return dense_->moments_pixels(); }
  void Run(const ConvolutionTensors& tensors) override;

 private:
  void Gather(const float* src, float* dense) const;
  void Spread(const float* dense, float* diff_src) const;

  Window window_;
  BlobDesc src_, gathered_;
  ConvolutionDirection direction_;
  std::unique_ptr<ConvolutionAlgorithm> dense_;
  ScratchLayout scratch_;
  size_t gathered_at_, dense_at_;  // offsets in scratch
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_STRIDED_H_
