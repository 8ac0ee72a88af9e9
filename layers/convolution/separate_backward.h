// Both gradients of a convolution by an algorithm for each, one after the other: the competitor of
// algorithms that compute both in one pass over the pixels.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_SEPARATE_BACKWARD_H_
#define RINGTAIL_LAYERS_CONVOLUTION_SEPARATE_BACKWARD_H_

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "layers/convolution/convolution_algorithm.h"

namespace ringtail {

class SeparateBackward final : public ConvolutionAlgorithm {
 public:
  SeparateBackward(std::unique_ptr<ConvolutionAlgorithm> weights,
                   std::unique_ptr<ConvolutionAlgorithm> data)
      : weights_(std::move(weights)), data_(std::move(data)) {}

  std::string name() const override { return "separate"; }
  std::string description() const override { return weights_->name() + " / " + data_->name(); }
  size_t scratch_bytes() const override {
    return std::max(weights_->scratch_bytes(), data_->scratch_bytes());
  }
  bool takes_affine() const override { return weights_->takes_affine(); }
  bool adds_to_diff_src() const override { return data_->adds_to_diff_src(); }
  int64_t gradient_sums_pixels() const override {
    return takes_affine() ? data_->gradient_sums_pixels() : 0;
  }

  void Run(const ConvolutionTensors& t) override {
    weights_->Run({.src = t.src,
                   .diff_dst = t.diff_dst,
                   .src_affine = t.src_affine,
                   .diff_weight = t.diff_weight,
                   .diff_bias = t.diff_bias,
                   .scratch = t.scratch});
    data_->Run({.src = t.diff_src_sums ? t.src : nullptr,
                .weight = t.weight,
                .diff_dst = t.diff_dst,
                .src_affine = t.diff_src_sums ? t.src_affine : ChannelAffine(),
                .diff_src_sums = t.diff_src_sums,
                .add_to_diff_src = t.add_to_diff_src,
                .diff_src = t.diff_src,
                .scratch = t.scratch});
  }

 private:
  std::unique_ptr<ConvolutionAlgorithm> weights_, data_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_SEPARATE_BACKWARD_H_
