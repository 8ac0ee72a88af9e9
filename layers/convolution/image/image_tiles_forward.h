// Forward of image_bf16_convolution.h by tiles (AMX; kernels/bf16/bf16_tiles.h): a tile's rows are
// pixels of dst, which lie some numbers apart in a line and overlap; its 32 columns are the taps of a
// row of a filter, of which the 3 x 7 numbers of ResNet's first layer fill two thirds.
// Threads divide stretches of rows of dst. Bits do not depend on threads.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_IMAGE_IMAGE_TILES_FORWARD_H_
#define RINGTAIL_LAYERS_CONVOLUTION_IMAGE_IMAGE_TILES_FORWARD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/kernels/bfloat16.h"
#include "layers/convolution/convolution_algorithm.h"
#include "layers/convolution/image/image_lines.h"
#include "layers/scratch_layout.h"

namespace ringtail {

class ImageTilesForward : public ConvolutionAlgorithm {
 public:
  // Only where HasBf16Tiles().
  explicit ImageTilesForward(const ConvolutionProblem& problem);

  std::string name() const override { return "image tiles"; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }
  void Run(const ConvolutionTensors& tensors) override;

 private:
  struct Buffers {  // of a thread
    Bfloat16* lines;
    float* sums;
  };
  void PackWeights(const float* weight, std::byte* scratch) const;
  void RunPart(const ConvolutionTensors& tensors, int64_t sample, int64_t part,
               const Buffers& buffers) const;
  int64_t Chunks() const;  // of 32 numbers, of a row of a filter
  int64_t LineNumbers() const;
  int64_t SumFloats() const;  // of a block of outputs in a row

  ImageLines lines_;
  Window window_;
  int64_t channels_;
  BlobDesc dst_;
  Activation activation_;
  std::vector<int64_t> taps_;  // where each chunk of each row of a filter begins
  int64_t rows_, threads_;
  ScratchLayout scratch_;
  size_t plain_at_, weights_at_, lines_at_, sums_at_;  // offsets in scratch
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_IMAGE_IMAGE_TILES_FORWARD_H_
