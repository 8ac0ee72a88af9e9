// The forward and the backward-data direction of a 1x1 convolution of stride 1 on bf16 blobs, with
// products by vdpbf16ps (kernels/bf16/pointwise_bf16.h). As PointwiseData (pointwise_data.h), which see
// for the words, but for these: weights are rounded to bf16 while they are packed; a run is summed
// over all channels at once, in f32, and rounded once; blobs that the caches cannot hold are not
// streamed around them. diff_src is added to before the sum is rounded.
// Cost: 2 N H W C K FLOPs; memory traffic is `in` and `out`, once.
// Bits depend neither on threads nor on what is taken for the neighbours.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_BF16_DATA_H_
#define RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_BF16_DATA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/kernels/bfloat16.h"
#include "layers/convolution/convolution_algorithm.h"
#include "layers/convolution/pixel_pieces.h"
#include "layers/convolution/pixel_view.h"
#include "layers/kernels/bf16/pointwise_bf16.h"
#include "layers/scratch_layout.h"

namespace ringtail {

class PointwiseBf16Data : public ConvolutionAlgorithm {
 public:
  // Null unless the machine has such products and the problem is a 1x1 convolution of stride 1
  // without padding, on bf16 blobs in blocks of a register.
  static std::unique_ptr<ConvolutionAlgorithm> Create(const ConvolutionProblem& problem,
                                                      ConvolutionDirection direction);

  // `direction`: kForward or kBackwardData.
  PointwiseBf16Data(const ConvolutionProblem& problem, ConvolutionDirection direction);

  std::string name() const override { return "pointwise bf16"; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }
  bool takes_affine() const override { return forward_; }
  bool adds_to_diff_src() const override { return !forward_; }
  int64_t moments_pixels() const override { return forward_ ? pieces_.piece_pixels() : 0; }
  int64_t gradient_sums_pixels() const override { return forward_ ? 0 : pieces_.piece_pixels(); }
  void Run(const ConvolutionTensors& tensors) override;

 private:
  struct Range {  // of panels or pieces
    int64_t begin, end;
  };
  struct Input {  // a run of `in`, all channels
    const Bfloat16* data;
    int64_t block_stride, sample_stride;
  };

  void PackPanel(const float* weight, int64_t panel, Bfloat16* to) const;
  const float* PackBias(const float* bias, float* to) const;
  Input InputOf(const ConvolutionTensors& tensors, const PixelPieces::Run& run,
                Bfloat16* buffer) const;
  void MultiplyRun(const ConvolutionTensors& tensors, const PixelPieces::Run& run,
                   const Range& panels, const float* bias, Bfloat16* buffer) const;
  void TakeMoments(const BlobMoments& moments, const PixelBlocks& blocks,
                   PointwiseBf16Product* product) const;
  void TakeSums(const ConvolutionTensors& tensors, const PixelBlocks& blocks,
                PointwiseBf16Product* product) const;
  int64_t PanelBlocks(int64_t panel) const;  // 2, or 1 for the last of an odd number
  int64_t PanelSize() const;                 // of the packed weights
  int64_t BufferSize() const;                // of a thread: a run, mapped

  bool forward_;
  bool in_is_affine_;
  Activation activation_;
  BlobDesc in_, out_;
  int64_t panels_;
  PixelPieces pieces_;
  int64_t threads_;
  ScratchLayout scratch_;
  size_t packed_, bias_, buffers_;  // offsets in scratch
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_POINTWISE_POINTWISE_BF16_DATA_H_
