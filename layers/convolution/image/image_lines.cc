#include "layers/convolution/image/image_lines.h"

#include <algorithm>

#include "core/round.h"
#include "layers/convolution/work_division.h"
#include "layers/kernels/bf16/image_bf16.h"

namespace ringtail {
namespace {

constexpr int64_t kLineNumbers = 32;  // of a cache line

// Pairs of pixels are read to the end of the last pair's taps, which may lie beyond the image.
int64_t LengthOf(const ConvolutionProblem& p) {
  const int64_t pixels = RoundUp(p.dst.W, 2), image = (p.window.PL + p.src.W) * p.src.C;
  const int64_t last_pixel = (pixels - 1) * p.window.SW * p.src.C;
  return RoundUp(std::max(image, last_pixel + p.window.KW * p.src.C) + kImageLineSlack,
                 kLineNumbers);
}

}  // namespace

ImageLines::ImageLines(const ConvolutionProblem& problem)
    : window_(problem.window), src_(problem.src), length_(LengthOf(problem)) {}

int64_t ImageLines::RowsThatFit(int64_t bytes, int64_t rows) const {
  const int64_t lines = bytes / (length_ * static_cast<int64_t>(sizeof(Bfloat16)));
  return EqualBlocks(rows, (lines - window_.KH) / window_.SH + 1, 1);
}

void ImageLines::Pack(const float* src, int64_t sample, int64_t first, int64_t rows,
                      Bfloat16* lines) const {
  const int64_t left = window_.PL * src_.C, end = left + src_.W * src_.C;
  for (int64_t l = 0; l < LinesOf(rows); ++l) {
    Bfloat16* const line = lines + l * length_;
    const int64_t y = first * window_.SH - window_.PT + l;
    if (y < 0 || y >= src_.H) {
      std::fill_n(line, length_, Bfloat16{});
      continue;
    }
    std::fill_n(line, left, Bfloat16{});
    RT_KERNEL(PackImageLine, src + sample * src_.C * src_.plane() + y * src_.W, src_.plane(),
              src_.C, src_.W, line + left);
    std::fill(line + end, line + length_, Bfloat16{});
  }
}

}  // namespace ringtail
