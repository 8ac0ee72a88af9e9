#include "tests/layers/convolution/depthwise_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include "core/parallel_for.h"
#include "layers/convolution/depthwise_convolution.h"
#include "layers/kernels/depthwise.h"
#include "tests/layers/layer_runner.h"
#include "tests/layers/test_affine.h"
#include "tests/layers/test_gradient.h"

namespace ringtail {
namespace {

using Direction = ConvolutionDirection;

void ExpectZeroPadding(const BlobDesc& desc, const float* blob) {
  BlobDesc full = desc;  // all channels of all blocks
  full.C = desc.channel_blocks() * desc.block;
  const std::vector<float> plain = CopyToPlain(full, blob);
  for (int64_t i = 0; i < static_cast<int64_t>(plain.size()); ++i) {
    if (i / desc.plane() % full.C < desc.C) continue;
    ASSERT_EQ(plain[i], 0) << "padding channel";
  }
}

// The memory of one call, full of NaN and guarded, and what comes of it.
class Call {
 public:
  Call(const ConvolutionProblem& p, const DepthwiseTensors& data, Direction direction,
       const DepthwiseOptions& options)
      : p_(p),
        data_(data),
        options_(options),
        algorithm_(CreateDepthwise(p, direction)),
        src_(p.src.bytes()),
        dst_(p.dst.bytes()),
        scratch_(algorithm_->scratch_bytes()),
        affine_(p.src),
        gradient_(p.dst),
        forward_(direction == Direction::kForward),
        data_wanted_(direction == Direction::kBackwardData || direction == Direction::kBackward),
        weights_wanted_(direction == Direction::kBackwardWeights ||
                        direction == Direction::kBackward) {
    scratch_.FillWithNan();
    t_.scratch = scratch_.data();
    if (!weights_wanted_ || data_wanted_) t_.weight = data.weight.data();
    if (forward_ || weights_wanted_) SetSrc();
    forward_ ? SetDst() : SetDiffDst();
    if (data_wanted_) SetDiffSrc();
    if (weights_wanted_) SetDiffParameters();
  }

  DepthwiseResult Run() {
    const std::vector<std::byte> before(dst_.data(), dst_.data() + dst_.bytes());
    algorithm_->Run(t_);
    EXPECT_TRUE(src_.GuardsIntact() && dst_.GuardsIntact() && diff_src_.GuardsIntact() &&
                scratch_.GuardsIntact());
    if (forward_) TakeBlob(p_.dst, dst_.floats());
    if (data_wanted_) TakeBlob(p_.src, diff_src_.floats());
    EXPECT_TRUE(forward_ || std::ranges::equal(before, std::span(dst_.data(), dst_.bytes())))
        << "diff_dst was written";
    return result_;
  }

 private:
  void SetSrc() {
    CopyToLayout(data_.src, p_.src, src_.floats());
    if (options_.src == DepthwiseMapped::kBefore) affine_.Apply(p_.src, src_.floats());
    if (options_.src == DepthwiseMapped::kOnTheWay) t_.src_affine = affine_.affine();
    t_.src = src_.floats();
  }
  void SetDst() {
    dst_.FillWithNan();
    t_.dst = dst_.floats();
    if (p_.bias) t_.bias = data_.bias.data();
    if (!options_.moments) return;
    t_.dst_moments.part_pixels = algorithm_->moments_pixels();
    result_.mean.assign(t_.dst_moments.elements(p_.dst), NAN);
    result_.m2 = result_.mean;
    t_.dst_moments.mean = result_.mean.data();
    t_.dst_moments.m2 = result_.m2.data();
  }
  void SetDiffDst() {
    CopyToLayout(data_.diff_dst, p_.dst, dst_.floats());
    if (options_.diff_dst == DepthwiseMapped::kBefore) gradient_.Apply(dst_.floats());
    if (options_.diff_dst == DepthwiseMapped::kOnTheWay) t_.diff_dst_map = gradient_.gradient();
    t_.diff_dst = dst_.floats();
  }
  void SetDiffSrc() {
    diff_src_ = GuardedBuffer(p_.src.bytes());
    diff_src_.FillWithNan();
    t_.diff_src = diff_src_.floats();
    if (!options_.sums) return;
    t_.diff_src_sums.part_pixels = algorithm_->gradient_sums_pixels();
    result_.g.assign(t_.diff_src_sums.elements(p_.src), NAN);
    result_.gx = result_.g;
    t_.diff_src_sums.g = result_.g.data();
    t_.diff_src_sums.gx = result_.gx.data();
  }
  void SetDiffParameters() {
    result_.diff_weight.assign(data_.weight.size(), NAN);
    result_.diff_bias.assign(p_.bias ? p_.src.C : 0, NAN);
    t_.diff_weight = result_.diff_weight.data();
    if (p_.bias) t_.diff_bias = result_.diff_bias.data();
  }
  void TakeBlob(const BlobDesc& desc, const float* blob) {
    ExpectZeroPadding(desc, blob);
    result_.blob = CopyToPlain(desc, blob);
  }

  const ConvolutionProblem p_;
  const DepthwiseTensors& data_;
  const DepthwiseOptions options_;
  std::unique_ptr<ConvolutionAlgorithm> algorithm_;
  GuardedBuffer src_, dst_, diff_src_, scratch_;  // dst_: dst or diff_dst
  TestAffine affine_;
  TestGradient gradient_;
  const bool forward_, data_wanted_, weights_wanted_;
  ConvolutionTensors t_;
  DepthwiseResult result_;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const DepthwiseCase& c) {
  return out << c.kernel << "x" << c.kernel << " stride " << c.stride << ", " << c.N << "x" << c.C
             << "x" << c.H << "x" << c.W << ", padding " << c.top << " " << c.left << " "
             << c.bottom << " " << c.right;
}

std::vector<DepthwiseCase> DepthwiseCases() {
  std::vector<DepthwiseCase> cases;
  for (const int64_t stride : {1, 2}) {
    for (int64_t size = 1; size <= 20; ++size) {
      cases.push_back({3, stride, 1, 5, size, size, 1, 1, 1, 1});
      cases.push_back({5, stride, 1, 5, size, size, 2, 2, 2, 2});
    }
    for (const int64_t size : {7, 14, 28, 56}) {
      cases.push_back({3, stride, 2, 24, size, size, 1, 1, 1, 1});
    }
    cases.push_back({3, stride, 3, 40, 37, 41, 1, 1, 1, 1});
    cases.push_back({3, stride, 9, 40, 28, 28, 1, 1, 1, 1});  // groups of samples, one not full
    cases.push_back({3, stride, 2, 16, 5, 33, 1, 1, 1, 1});
    cases.push_back({3, stride, 2, 16, 33, 3, 1, 1, 1, 1});
    cases.push_back({3, stride, 2, 17, 9, 12, 0, 0, 0, 0});
    cases.push_back({3, stride, 2, 17, 9, 12, 0, 2, 1, 0});  // as TensorFlow's SAME, and worse
    cases.push_back({5, stride, 2, 17, 13, 22, 1, 2, 2, 1});
    cases.push_back({3, stride, 1, 8, 2, 2, 3, 4, 4, 3});  // windows that see nothing but padding
    cases.push_back({5, stride, 1, 8, 1, 2, 5, 6, 6, 7});
  }
  return cases;
}

ConvolutionProblem DepthwiseProblem(const DepthwiseCase& c, bool bias, Activation activation) {
  const int64_t lanes = RT_KERNEL(DepthwiseLanes)();
  const Window w = {c.kernel, c.kernel, c.stride, c.stride, c.top, c.left, c.bottom, c.right};
  return {.window = w,
          .groups = c.C,
          .src = {c.N, c.C, c.H, c.W, lanes},
          .dst = {c.N, c.C, WindowsFloor(c.H, c.top + c.bottom, c.kernel, c.stride),
                  WindowsFloor(c.W, c.left + c.right, c.kernel, c.stride), lanes},
          .bias = bias,
          .activation = activation};
}

DepthwiseTensors::DepthwiseTensors(const ConvolutionProblem& p)
    : src(RandomPlain(p.src, 1)),
      diff_dst(RandomPlain(p.dst, 2)),
      weight(RandomPlain({1, p.src.C * p.window.KH * p.window.KW}, 3)),
      bias(RandomPlain({1, p.src.C}, 4)) {}

DepthwiseResult RunDepthwise(const ConvolutionProblem& p, const DepthwiseTensors& data,
                             Direction direction, const DepthwiseOptions& options) {
  const int before = NumComputeThreads();
  SetNumComputeThreads(options.threads);
  DepthwiseResult result = Call(p, data, direction, options).Run();
  SetNumComputeThreads(before);
  return result;
}

}  // namespace ringtail
