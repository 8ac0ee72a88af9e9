// Forward of image_bf16_convolution.h. Threads divide stretches of rows of dst, whose lines lie in
// the second-level cache; each stretch is a part of the moments.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_IMAGE_IMAGE_BF16_FORWARD_H_
#define RINGTAIL_LAYERS_CONVOLUTION_IMAGE_IMAGE_BF16_FORWARD_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/kernels/bfloat16.h"
#include "layers/convolution/convolution_algorithm.h"
#include "layers/convolution/image/image_lines.h"
#include "layers/scratch_layout.h"

namespace ringtail {

class ImageBf16Forward : public ConvolutionAlgorithm {
 public:
  explicit ImageBf16Forward(const ConvolutionProblem& problem);

  std::string name() const override { return "image bf16"; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }
  int64_t moments_pixels() const override { return rows_ * dst_.W; }
  void Run(const ConvolutionTensors& tensors) override;

 private:
  void PackWeights(const float* weight, Bfloat16* packed) const;
  // Part `part` of rows of a sample.
  void RunPart(const ConvolutionTensors& tensors, int64_t sample, int64_t part,
               Bfloat16* lines) const;
  int64_t Pairs() const;
  int64_t PanelSize() const;  // of the packed weights

  ImageLines lines_;
  Window window_;
  int64_t channels_;
  BlobDesc dst_;
  Activation activation_;
  int64_t panels_, rows_, threads_;
  ScratchLayout scratch_;
  size_t packed_at_, lines_at_;  // offsets in scratch
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_IMAGE_IMAGE_BF16_FORWARD_H_
