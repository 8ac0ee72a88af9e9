// Winograd with operands in bf16, as an algorithm: against the definition in double precision, and
// where that would take too long against Winograd's f32 products. Only machines that multiply bf16
// have the algorithm.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/parallel_for.h"
#include "layers/convolution/winograd/winograd_convolution.h"
#include "layers/element_types/blob_elements.h"
#include "layers/kernels/bf16/bf16_products.h"
#include "tests/layers/convolution/defined_convolution.h"
#include "tests/layers/test_affine.h"

namespace ringtail {
namespace {

using Direction = ConvolutionDirection;
using Floats = std::vector<float>;

// Each operand is rounded by up to 2^-9, after a transform that subtracts.
constexpr double kTolerance = 6e-3;

struct Case {
  int64_t N, C, K, H, W, padding;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.N << "x" << c.C << "x" << c.H << "x" << c.W << " to " << c.K
             << " channels, padding " << c.padding;
}

ConvolutionProblem ProblemOf(const Case& c) {
  ConvolutionProblem p;
  const int64_t pad = c.padding, more = 2 * pad - 2;
  p.window = {.KH = 3, .KW = 3, .PT = pad, .PL = pad, .PB = pad, .PR = pad};
  p.src = {c.N, c.C, c.H, c.W, kBf16ProductLanes};
  p.dst = {c.N, c.K, c.H + more, c.W + more, kBf16ProductLanes};
  p.src.type = p.dst.type = BlobType::kBf16;
  p.bias = true;
  return p;
}

std::vector<Bfloat16> Narrowed(const Floats& values) {
  std::vector<Bfloat16> narrow(values.size());
  std::ranges::transform(values, narrow.begin(), [](float x) { return Narrow(x); });
  return narrow;
}

Floats Widened(const std::vector<Bfloat16>& values) {
  Floats wide(values.size());
  std::ranges::transform(values, wide.begin(), [](Bfloat16 x) { return Widen(x); });
  return wide;
}

const float* Blob(const std::vector<Bfloat16>& elements) {
  return reinterpret_cast<const float*>(elements.data());
}
float* Blob(std::vector<Bfloat16>& elements) { return reinterpret_cast<float*>(elements.data()); }

// The blobs of `truth` as bf16, which must be able to hold them, through an algorithm: dst,
// diff_src, or the gradients of the weights and of the bias.
Floats RunOn(const ConvolutionProblem& p, const DefinedConvolution& truth, Direction direction,
             ConvolutionAlgorithm* algorithm, const ChannelAffine& affine = {}) {
  const std::vector<Bfloat16> src = Narrowed(truth.src), diff_dst = Narrowed(truth.diff_dst);
  AlignedBuffer scratch(algorithm->scratch_bytes());
  if (direction == Direction::kBackwardWeights) {
    Floats out(truth.weight.size() + truth.bias.size(), NAN);
    algorithm->Run({.src = Blob(src),
                    .diff_dst = Blob(diff_dst),
                    .src_affine = affine,
                    .diff_weight = out.data(),
                    .diff_bias = out.data() + truth.weight.size(),
                    .scratch = scratch.data()});
    return out;
  }
  const bool forward = direction == Direction::kForward;
  std::vector<Bfloat16> out((forward ? p.dst : p.src).elements(), Narrow(NAN));
  if (forward) {
    algorithm->Run({.src = Blob(src),
                    .weight = truth.weight.data(),
                    .bias = truth.bias.data(),
                    .src_affine = affine,
                    .dst = Blob(out),
                    .scratch = scratch.data()});
  } else {
    algorithm->Run({.weight = truth.weight.data(),
                    .diff_dst = Blob(diff_dst),
                    .diff_src = Blob(out),
                    .scratch = scratch.data()});
  }
  return Widened(out);
}

class WinogradBf16Test : public testing::TestWithParam<Case> {
 protected:
  WinogradBf16Test() : p_(ProblemOf(GetParam())), truth_(p_.src, p_.dst, p_.window) {
    for (Floats* blob : {&truth_.src, &truth_.diff_dst}) *blob = Widened(Narrowed(*blob));
  }
  void SetUp() override {
    if (!RT_KERNEL(HasBf16Products)()) GTEST_SKIP() << "no products of bf16";
  }

  Floats Run(Direction direction, int threads = 1, const ChannelAffine& affine = {}) const {
    const int before = NumComputeThreads();
    SetNumComputeThreads(threads);
    Floats out = RunOn(p_, truth_, direction, CreateWinogradBf16(p_, direction).get(), affine);
    SetNumComputeThreads(before);
    return out;
  }
  std::span<const float> WeightsOf(const Floats& gradients) const {
    return std::span(gradients).first(truth_.weight.size());
  }

  ConvolutionProblem p_;
  DefinedConvolution truth_;
};

TEST_P(WinogradBf16Test, IsTheDefinition) {
  EXPECT_LT(RelativeError(Run(Direction::kForward), truth_.Forward()), kTolerance);
  EXPECT_LT(RelativeError(Run(Direction::kBackwardData), truth_.BackwardData()), kTolerance);
  const Floats gradients = Run(Direction::kBackwardWeights);
  EXPECT_LT(RelativeError(WeightsOf(gradients), truth_.BackwardWeights()), kTolerance);
  const auto bias = std::span(gradients).subspan(truth_.weight.size());
  EXPECT_LT(RelativeError(bias, truth_.BackwardBias()), 1e-6);
}

TEST_P(WinogradBf16Test, MapsSrc) {
  BlobDesc f32 = p_.src;
  f32.type = BlobType::kF32;
  const TestAffine map(f32);
  const Floats forward = Run(Direction::kForward, 1, map.affine());
  const Floats gradients = Run(Direction::kBackwardWeights, 1, map.affine());
  map.Apply(f32, truth_.src.data());
  EXPECT_LT(RelativeError(forward, truth_.Forward()), kTolerance);
  EXPECT_LT(RelativeError(WeightsOf(gradients), truth_.BackwardWeights()), kTolerance);
}

TEST_P(WinogradBf16Test, ClampsDst) {
  p_.activation = Activation::kRelu6;
  for (float& bias : truth_.bias) bias += 5;  // some beyond either bound
  std::vector<double> expected = truth_.Forward();
  for (double& x : expected) x = std::clamp(x, 0.0, 6.0);
  const Floats dst = Run(Direction::kForward);
  EXPECT_LT(RelativeError(dst, expected), 3 * kTolerance);  // the largest values are cut
  EXPECT_GE(std::ranges::min(dst), 0);
  EXPECT_LE(std::ranges::max(dst), 6);
}

TEST_P(WinogradBf16Test, NanDoesNotHide) {
  const size_t poisoned = truth_.src.size() / 2;
  truth_.src[poisoned] = NAN;
  const Floats dst = Run(Direction::kForward, 2), gradient = Run(Direction::kBackwardWeights, 2);
  truth_.ForEachProduct([&](int64_t s, int64_t w, int64_t d) {
    if (s != static_cast<int64_t>(poisoned)) return;
    EXPECT_TRUE(std::isnan(dst[d])) << d;
    EXPECT_TRUE(std::isnan(gradient[w])) << w;
  });
}

TEST_P(WinogradBf16Test, TheSameBitsWithAnyNumberOfThreads) {
  for (const auto direction :
       {Direction::kForward, Direction::kBackwardData, Direction::kBackwardWeights}) {
    const Floats one = Run(direction);
    EXPECT_EQ(Run(direction, 2), one);
    EXPECT_EQ(Run(direction, 5), one);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, WinogradBf16Test,
                         testing::Values(Case{2, 16, 16, 8, 8, 1}, Case{3, 32, 48, 7, 9, 1},
                                         Case{1, 16, 32, 5, 45, 0}, Case{1, 16, 16, 1, 1, 1},
                                         Case{9, 48, 80, 6, 14, 1}, Case{2, 32, 16, 4, 3, 2},
                                         Case{1, 320, 336, 4, 5, 0}));

class WinogradBf16LargeTest : public testing::TestWithParam<Case> {};

TEST_P(WinogradBf16LargeTest, IsNearProductsInF32) {
  if (!RT_KERNEL(HasBf16Products)()) GTEST_SKIP() << "no products of bf16";
  const ConvolutionProblem p = ProblemOf(GetParam());
  const DefinedConvolution truth(p.src, p.dst, p.window);
  for (const auto direction :
       {Direction::kForward, Direction::kBackwardData, Direction::kBackwardWeights}) {
    const Floats f32 = RunOn(p, truth, direction, CreateWinograd(p, direction, 2).get());
    const std::vector<double> expected(f32.begin(), f32.end());
    EXPECT_LT(
        RelativeError(RunOn(p, truth, direction, CreateWinogradBf16(p, direction).get()), expected),
        kTolerance);
  }
}

// V in several blocks, so that U is made once, of all panels; sums over several blocks of tiles.
INSTANTIATE_TEST_SUITE_P(Shapes, WinogradBf16LargeTest,
                         testing::Values(Case{1, 1024, 112, 40, 40, 1},
                                         Case{1, 16, 16, 150, 224, 1}));

TEST(WinogradBf16ProblemTest, IsForBf16BlobsAlone) {
  ConvolutionProblem p = ProblemOf({1, 16, 16, 8, 8, 1});
  EXPECT_EQ(CreateWinogradBf16(p, Direction::kForward) != nullptr, RT_KERNEL(HasBf16Products)());
  p.src.type = BlobType::kF32;
  EXPECT_EQ(CreateWinogradBf16(p, Direction::kForward), nullptr);
}

}  // namespace
}  // namespace ringtail
