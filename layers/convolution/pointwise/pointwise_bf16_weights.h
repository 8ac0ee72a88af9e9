// The gradient of the weights of a 1x1 convolution of stride 1 on bf16 blobs, from sums over pixels
// (pointwise_sums.h) by the products of kernels/bf16/bf16_products.h: pairs of pixels of a run are
// interleaved in the second-level cache, where they serve a whole tile of sums. A map of src (batch norm
// before) is applied, and rounded, on the way.
// Cost: 2 N H W IC OC FLOPs at up to nine tenths of the machine's bf16 peak.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_BF16_WEIGHTS_H_
#define RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_BF16_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/kernels/bfloat16.h"
#include "layers/convolution/convolution_algorithm.h"
#include "layers/convolution/pixel_pieces.h"
#include "layers/convolution/pointwise/pointwise_sums.h"
#include "layers/scratch_layout.h"

namespace ringtail {

class PointwiseBf16Weights : public ConvolutionAlgorithm {
 public:
  // Null unless the machine has such products and the problem is a 1x1 convolution of stride 1
  // without padding and bias, on bf16 blobs whose channels fill registers.
  static std::unique_ptr<ConvolutionAlgorithm> Create(const ConvolutionProblem& problem,
                                                      ConvolutionDirection direction);

  explicit PointwiseBf16Weights(const ConvolutionProblem& problem);
  std::string name() const override { return "pointwise bf16"; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }
  bool takes_affine() const override { return true; }
  void Run(const ConvolutionTensors& tensors) override;

 private:
  void SumTile(const ConvolutionTensors& tensors, int64_t slot, int64_t tile, Bfloat16* buffer,
               float* sums) const;

  PointwiseSums sums_;
  PixelPieces pieces_;
  int64_t threads_;
  int64_t buffer_size_;  // of a thread: a run of a tile of src and of diff_dst, interleaved
  ScratchLayout scratch_;
  size_t sums_at_, buffers_at_;  // offsets in scratch
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_BF16_WEIGHTS_H_
