// Backward-weights of image_bf16_convolution.h by tiles (AMX; kernels/bf16/bf16_tiles.h). As
// ImageBf16Weights (image_bf16_weights.h), which see, but diff_dst is transposed, and the sums of a line of a
// filter are tiles of 16 outputs x 16 of its numbers. Bits do not depend on threads.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_IMAGE_IMAGE_TILES_WEIGHTS_H_
#define RINGTAIL_LAYERS_CONVOLUTION_IMAGE_IMAGE_TILES_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/kernels/bfloat16.h"
#include "layers/convolution/convolution_algorithm.h"
#include "layers/convolution/image/image_lines.h"
#include "layers/scratch_layout.h"

namespace ringtail {

class ImageTilesWeights : public ConvolutionAlgorithm {
 public:
  // Only where HasBf16Tiles().
  explicit ImageTilesWeights(const ConvolutionProblem& problem);

  std::string name() const override { return "image tiles"; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }
  void Run(const ConvolutionTensors& tensors) override;

 private:
  struct Buffers {  // of a thread
    Bfloat16 *lines, *expanded, *pixels, *diff_dst;
  };
  void AddSlot(const ConvolutionTensors& tensors, int64_t slot, const Buffers& buffers) const;
  void AddPart(const ConvolutionTensors& tensors, int64_t sample, int64_t first,
               const Buffers& buffers, float* sums, bool is_first) const;
  void Expand(int64_t rows, const Buffers& buffers) const;
  void PackDiffDst(const ConvolutionTensors& tensors, int64_t sample, int64_t first, int64_t rows,
                   const Buffers& buffers) const;
  void Write(const ConvolutionTensors& tensors) const;

  int64_t TapBlocks() const;     // of 16 numbers of a filter's row
  int64_t RowPixels() const;     // of dst, whole pairs
  int64_t PartPixels() const;    // whole groups of 32
  int64_t PhaseNumbers() const;  // of a block of taps, with what a last group reads beyond
  int64_t ExpandedNumbers() const;
  int64_t SumFloats() const;

  ImageLines lines_;
  Window window_;
  int64_t channels_;
  BlobDesc dst_;
  int64_t slots_, rows_, threads_;
  ScratchLayout scratch_;
  size_t sums_at_, lines_at_, expanded_at_, pixels_at_, diff_dst_at_;  // offsets in scratch
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_IMAGE_IMAGE_TILES_WEIGHTS_H_
