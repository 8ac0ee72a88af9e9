// ImageLines: the rows of images in bf16 as products over them read them (kernels/bf16/image_bf16.h), with
// zeros where the window's padding is: some rows of one sample at a time, in a cache.
// Thread-safety: immutable.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_IMAGE_IMAGE_LINES_H_
#define RINGTAIL_LAYERS_CONVOLUTION_IMAGE_IMAGE_LINES_H_

#include <cstdint>

#include "core/kernels/bfloat16.h"
#include "layers/convolution/convolution_algorithm.h"

namespace ringtail {

class ImageLines {
 public:
  // src of `problem` is f32 in planes (block 1), of at most kMostImageChannels.
  explicit ImageLines(const ConvolutionProblem& problem);

  int64_t length() const { return length_; }            // numbers of a line, with what follows it
  int64_t taps() const { return window_.KW * src_.C; }  // of one row of a filter
  int64_t pixel_step() const { return window_.SW * src_.C; }  // numbers between pixels of dst
  // Of so many rows of dst.
  int64_t LinesOf(int64_t rows) const { return (rows - 1) * window_.SH + window_.KH; }
  // In how many rows of dst at a time `rows` are equally divided, if the lines of each may take so
  // many bytes.
  int64_t RowsThatFit(int64_t bytes, int64_t rows) const;
  // Writes the lines that rows [first, first + rows) of dst read.
  void Pack(const float* src, int64_t sample, int64_t first, int64_t rows, Bfloat16* lines) const;

 private:
  Window window_;
  BlobDesc src_;
  int64_t length_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_IMAGE_IMAGE_LINES_H_
