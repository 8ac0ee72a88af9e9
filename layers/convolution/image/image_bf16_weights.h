// Backward-weights of image_bf16_convolution.h: for each row l of the filter
//
//   sum[l][i][k] = sum over y, x of line[y SH + l][x SW C + i] diff_dst[k][y][x]
//
// over pairs of pixels x, from lines that are expanded to them (kernels/bf16/image_bf16.h) by phases of the
// vertical stride, so that the lines of all y follow one another. Samples are divided among slots, each
// with sums of its own, which are added in order: slots are a function of the shape alone.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_IMAGE_IMAGE_BF16_WEIGHTS_H_
#define RINGTAIL_LAYERS_CONVOLUTION_IMAGE_IMAGE_BF16_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/kernels/bfloat16.h"
#include "layers/convolution/convolution_algorithm.h"
#include "layers/convolution/image/image_lines.h"
#include "layers/kernels/bf16/bf16_products.h"
#include "layers/scratch_layout.h"

namespace ringtail {

class ImageBf16Weights : public ConvolutionAlgorithm {
 public:
  explicit ImageBf16Weights(const ConvolutionProblem& problem);

  std::string name() const override { return "image bf16"; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }
  void Run(const ConvolutionTensors& tensors) override;

 private:
  struct Buffers {  // of a thread
    Bfloat16 *lines, *expanded, *diff_dst;
  };
  void AddSlot(const ConvolutionTensors& tensors, int64_t slot, const Buffers& buffers) const;
  void AddPart(const ConvolutionTensors& tensors, int64_t sample, int64_t first,
               const Buffers& buffers, float* sums, double* bias) const;
  void Expand(const Bfloat16* lines, int64_t rows, Bfloat16* expanded) const;
  void Write(const ConvolutionTensors& tensors) const;

  int64_t TapBlocks() const;  // of the numbers of a filter's row
  int64_t Pairs() const;      // of pixels in a row of dst
  int64_t PhaseRows() const { return rows_ + (window_.KH - 1) / window_.SH; }
  int64_t PhaseSize() const { return PhaseRows() * Pairs() * 2 * kBf16ProductLanes; }
  int64_t SumRows() const;  // of one line of a filter
  int64_t SumSize() const { return window_.KH * SumRows() * dst_.C; }

  ImageLines lines_;
  Window window_;
  int64_t channels_;
  BlobDesc dst_;
  int64_t slots_, rows_, threads_;
  ScratchLayout scratch_;
  size_t sums_at_, bias_at_, lines_at_, expanded_at_, diff_dst_at_;  // offsets in scratch
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_IMAGE_IMAGE_BF16_WEIGHTS_H_
