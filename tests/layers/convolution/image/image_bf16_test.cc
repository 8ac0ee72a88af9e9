// Convolutions of images with bf16 products: moments, bounds, threads, NaN (bf16_convolution_test
// compares them with the definition). Only machines that multiply bf16 have them.
#include "layers/convolution/image/image_bf16_convolution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/kernels/bfloat16.h"
#include "core/parallel_for.h"
#include "layers/kernels/bf16/bf16_products.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

using Direction = ConvolutionDirection;
using Floats = std::vector<float>;

struct Case {
  int64_t N, C, K, H, W, kernel, stride;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.N << "x" << c.C << "x" << c.H << "x" << c.W << " to " << c.K
             << " channels, kernel " << c.kernel << ", stride " << c.stride;
}

ConvolutionProblem ProblemOf(const Case& c) {
  ConvolutionProblem p;
  const int64_t pad = c.kernel / 2;
  p.window = {.KH = c.kernel,
              .KW = c.kernel,
              .SH = c.stride,
              .SW = c.stride,
              .PT = pad,
              .PL = pad,
              .PB = pad,
              .PR = pad};
  p.src = {c.N, c.C, c.H, c.W};
  p.dst = {c.N, c.K, (c.H - 1) / c.stride + 1, (c.W - 1) / c.stride + 1, kBf16ProductLanes};
  p.dst.type = BlobType::kBf16;
  p.bias = true;
  return p;
}

struct Result {
  Floats dst, gradients;  // plain
  std::vector<double> mean, m2;
  BlobMoments parts;
};

class ImageBf16Test : public testing::TestWithParam<Case> {
 protected:
  ImageBf16Test()
      : p_(ProblemOf(GetParam())),
        src_(RandomPlain(p_.src, 1)),
        diff_dst_(RandomPlain(p_.dst, 2)),
        weight_(RandomPlain({1, p_.dst.C * p_.src.C * p_.window.KH * p_.window.KW}, 3)),
        bias_(RandomPlain({1, p_.dst.C}, 4)) {}
  void SetUp() override {
    if (!RT_KERNEL(HasBf16Products)()) GTEST_SKIP() << "no products of bf16";
  }

  Result Forward(int threads = 1, bool moments = false) const {
    const int before = NumComputeThreads();
    SetNumComputeThreads(threads);
    const auto algorithm = CreateImageBf16(p_, Direction::kForward);
    AlignedBuffer scratch(algorithm->scratch_bytes()), dst(p_.dst.bytes());
    std::ranges::fill(scratch.floats(), NAN);
    Result result;
    result.parts.part_pixels = algorithm->moments_pixels();
    ConvolutionTensors t{.src = src_.data(), .weight = weight_.data(), .bias = bias_.data()};
    t.dst = dst.floats().data(), t.scratch = scratch.data();
    if (moments) {
      result.mean.assign(result.parts.elements(p_.dst), NAN);
      result.m2 = result.mean;
      result.parts.mean = result.mean.data(), result.parts.m2 = result.m2.data();
      t.dst_moments = result.parts;
    }
    algorithm->Run(t);
    SetNumComputeThreads(before);
    result.dst = CopyToPlain(p_.dst, t.dst);
    return result;
  }
  // Of the weights, then of the bias.
  Floats Gradients(int threads = 1) const {
    const int before = NumComputeThreads();
    SetNumComputeThreads(threads);
    const auto algorithm = CreateImageBf16(p_, Direction::kBackwardWeights);
    AlignedBuffer scratch(algorithm->scratch_bytes()), diff_dst(p_.dst.bytes());
    std::ranges::fill(scratch.floats(), NAN);
    CopyToLayout(diff_dst_, p_.dst, diff_dst.floats().data());
    Floats out(weight_.size() + bias_.size(), NAN);
    algorithm->Run({.src = src_.data(),
                    .diff_dst = diff_dst.floats().data(),
                    .diff_weight = out.data(),
                    .diff_bias = out.data() + weight_.size(),
                    .scratch = scratch.data()});
    SetNumComputeThreads(before);
    return out;
  }

  ConvolutionProblem p_;
  Floats src_, diff_dst_, weight_, bias_;
};

TEST_P(ImageBf16Test, TakesTheMomentsOfDst) {
  const Result result = Forward(1, /*moments=*/true);
  EXPECT_EQ(result.dst, Forward().dst);
  const BlobDesc& d = p_.dst;
  const int64_t parts = result.parts.parts(d);
  for (int64_t n = 0; n < d.N; ++n) {
    for (int64_t c = 0; c < d.C; ++c) {
      for (int64_t part = 0; part < parts; ++part) {
        const int64_t pixels = result.parts.PixelsOf(d, part);
        const float* x = &result.dst[(n * d.C + c) * d.plane() + part * result.parts.part_pixels];
        double mean = 0, m2 = 0;
        for (int64_t i = 0; i < pixels; ++i) mean += x[i] / static_cast<double>(pixels);
        for (int64_t i = 0; i < pixels; ++i) m2 += (x[i] - mean) * (x[i] - mean);
        const int64_t at = result.parts.At(d, n, part, c / d.block) + c % d.block;
        ASSERT_NEAR(result.mean[at], mean, 1e-4) << c;
        ASSERT_NEAR(result.m2[at], m2, 1e-4 * (1 + m2)) << c;
      }
    }
  }
}

TEST_P(ImageBf16Test, ClampsDst) {
  const Floats unbounded = Forward().dst;
  p_.activation = Activation::kRelu;
  const Floats clamped = Forward().dst;
  for (size_t i = 0; i < clamped.size(); ++i) ASSERT_EQ(clamped[i], std::max(unbounded[i], 0.0F));
}

TEST_P(ImageBf16Test, TheSameBitsWithAnyNumberOfThreads) {
  const Result one = Forward(1, true);
  const Floats gradients = Gradients(1);
  for (const int threads : {2, 5}) {
    const Result result = Forward(threads, true);
    EXPECT_EQ(result.dst, one.dst);
    EXPECT_EQ(result.mean, one.mean);
    EXPECT_EQ(result.m2, one.m2);
    EXPECT_EQ(Gradients(threads), gradients);
  }
}

TEST_P(ImageBf16Test, SumsDiffDst) {
  const Floats gradients = Gradients();
  for (int64_t k = 0; k < p_.dst.C; ++k) {
    double sum = 0;
    for (int64_t n = 0; n < p_.dst.N; ++n) {
      const float* plane = &diff_dst_[(n * p_.dst.C + k) * p_.dst.plane()];
      for (int64_t i = 0; i < p_.dst.plane(); ++i) sum += Widen(Narrow(plane[i]));
    }
    ASSERT_NEAR(gradients[weight_.size() + k], sum, 1e-5 * static_cast<double>(diff_dst_.size()));
  }
}

TEST_P(ImageBf16Test, NanReachesWhatReadsIt) {
  src_.back() = NAN;  // the last pixel of the last plane
  const Floats dst = Forward().dst, gradients = Gradients();
  EXPECT_TRUE(std::isnan(dst.back()) || p_.src.W % p_.window.SW != 0);
  EXPECT_FALSE(std::isnan(dst.front()));
  EXPECT_EQ(std::ranges::any_of(dst, [](float x) { return std::isnan(x); }),
            std::ranges::any_of(gradients, [](float x) { return std::isnan(x); }));
}

INSTANTIATE_TEST_SUITE_P(Shapes, ImageBf16Test,
                         testing::Values(Case{2, 3, 64, 30, 30, 7, 2}, Case{1, 3, 16, 17, 60, 3, 2},
                                         Case{3, 3, 48, 21, 13, 5, 1}, Case{18, 1, 16, 9, 9, 3, 1},
                                         Case{1, 3, 32, 90, 160, 3, 1}));

TEST(ImageBf16ProblemTest, SaysWhatItIsFor) {
  const ConvolutionProblem p = ProblemOf({1, 3, 16, 8, 8, 3, 1});
  const auto has = [](const ConvolutionProblem& problem, Direction direction) {
    return CreateImageBf16(problem, direction) != nullptr;
  };
  EXPECT_EQ(has(p, Direction::kForward), RT_KERNEL(HasBf16Products)());
  EXPECT_EQ(has(p, Direction::kBackwardWeights), RT_KERNEL(HasBf16Products)());
  EXPECT_FALSE(has(p, Direction::kBackwardData));
  EXPECT_FALSE(has(p, Direction::kBackward));
  ConvolutionProblem other = p;
  other.dst.type = BlobType::kF32;
  EXPECT_FALSE(has(other, Direction::kForward));
  other = p;
  other.src.C = 5;
  EXPECT_FALSE(has(other, Direction::kForward));
  other = p;
  other.window.KW =
      15;  // a filter's row of 45 numbers, rounded up to 48: as long as may be with SW 5
  other.window.SW = 6;
  EXPECT_FALSE(has(other, Direction::kForward));
}

}  // namespace
}  // namespace ringtail
