#include "layers/convolution/pointwise/pointwise_strided.h"

#include <algorithm>
#include <utility>

#include "layers/parallel_blobs.h"

namespace ringtail {

ConvolutionProblem PointwiseStrided::DenseProblem(const ConvolutionProblem& problem) {
  ConvolutionProblem dense = problem;
  dense.window.SH = dense.window.SW = 1;
  dense.src.H = problem.dst.H;
  dense.src.W = problem.dst.W;
  return dense;
}

PointwiseStrided::PointwiseStrided(const ConvolutionProblem& problem,
                                   ConvolutionDirection direction,
                                   std::unique_ptr<ConvolutionAlgorithm> dense)
    : window_(problem.window),
      src_(problem.src),
      gathered_(DenseProblem(problem).src),
      direction_(direction),
      dense_(std::move(dense)),
      gathered_at_(scratch_.AddBytes(gathered_.bytes())),
      dense_at_(scratch_.AddBytes(dense_->scratch_bytes())) {}

void PointwiseStrided::Gather(const float* src, float* dense) const {
  const int64_t block = src_.block;
  ForEachChannelBlock(gathered_, [&](int64_t i) {
    float* to = dense + i * gathered_.plane() * block;
    for (int64_t y = 0; y < gathered_.H; ++y) {
      const float* row = src + (i * src_.H + y * window_.SH) * src_.W * block;
      for (int64_t x = 0; x < gathered_.W; ++x, to += block) {
        std::copy_n(row + x * window_.SW * block, block, to);
      }
    }
  });
}

void PointwiseStrided::Spread(const float* dense, float* diff_src) const {
  const int64_t block = src_.block, row_floats = src_.W * block;
  ForEachChannelBlock(src_, [&](int64_t i) {
    const float* from = dense + i * gathered_.plane() * block;
    for (int64_t y = 0; y < src_.H; ++y) {
      float* row = diff_src + (i * src_.H + y) * row_floats;
      std::fill_n(row, row_floats, 0.0f);
      if (y % window_.SH != 0) continue;
      for (int64_t x = 0; x < gathered_.W; ++x, from += block) {
        std::copy_n(from, block, row + x * window_.SW * block);
      }
    }
  });
}

void PointwiseStrided::Run(const ConvolutionTensors& tensors) {
  float* gathered = ArrayAt<float>(tensors.scratch, gathered_at_);
  ConvolutionTensors dense = tensors;
  dense.scratch = tensors.scratch + dense_at_;
  if (direction_ == ConvolutionDirection::kBackwardData) {
    dense.diff_src = gathered;
    dense_->Run(dense);
    return Spread(gathered, tensors.diff_src);
  }
  Gather(tensors.src, gathered);
  dense.src = gathered;
  dense_->Run(dense);
}

}  // namespace ringtail
