// Depthwise convolution's directions against the definition in double precision.
#include "layers/convolution/depthwise_convolution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/layers/convolution/depthwise_call.h"
#include "tests/layers/convolution/pointwise_call.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

using Direction = ConvolutionDirection;
using Result = DepthwiseResult;
using Doubles = std::vector<double>;

// Calls fn(src offset, weight offset, dst offset), all plain, for every product in the definition.
template <typename Fn>
void ForEachProduct(const ConvolutionProblem& p, const Fn& fn) {
  const BlobDesc &s = p.src, &d = p.dst;
  const Window& w = p.window;
  for (int64_t plane = 0; plane < d.N * d.C; ++plane)
    for (int64_t y = 0; y < d.H; ++y)
      for (int64_t x = 0; x < d.W; ++x)
        for (int64_t i = 0; i < w.KH; ++i)
          for (int64_t j = 0; j < w.KW; ++j) {
            const int64_t sy = y * w.SH + i - w.PT, sx = x * w.SW + j - w.PL;
            if (sy < 0 || sy >= s.H || sx < 0 || sx >= s.W) continue;
            fn((plane * s.H + sy) * s.W + sx, (plane % d.C * w.KH + i) * w.KW + j,
               (plane * d.H + y) * d.W + x);
          }
}

double Clamped(double x, Activation activation) {
  if (activation == Activation::kNone) return x;
  return activation == Activation::kRelu ? std::max(x, 0.0) : std::clamp(x, 0.0, 6.0);
}

Doubles ExpectedForward(const ConvolutionProblem& p, const DepthwiseTensors& data) {
  Doubles dst(PlainElements(p.dst));
  for (size_t i = 0; i < dst.size() && p.bias; ++i) {
    dst[i] = data.bias[i / p.dst.plane() % p.dst.C];
  }
  ForEachProduct(p, [&](int64_t s, int64_t w, int64_t d) {
    dst[d] += static_cast<double>(data.src[s]) * data.weight[w];
  });
  for (double& x : dst) x = Clamped(x, p.activation);
  return dst;
}

constexpr double kTolerance = 1e-6;

constexpr Direction kDirections[] = {Direction::kForward, Direction::kBackwardData,
                                     Direction::kBackwardWeights, Direction::kBackward};

class DepthwiseTest : public testing::TestWithParam<DepthwiseCase> {};

TEST_P(DepthwiseTest, Forward) {
  for (const bool bias : {false, true}) {
    const ConvolutionProblem p = DepthwiseProblem(GetParam(), bias);
    const DepthwiseTensors data(p);
    EXPECT_LT(
        RelativeError(RunDepthwise(p, data, Direction::kForward).blob, ExpectedForward(p, data)),
        kTolerance);
  }
}

TEST_P(DepthwiseTest, ForwardWithAFusedActivation) {
  for (const Activation activation : {Activation::kRelu, Activation::kRelu6}) {
    const ConvolutionProblem p = DepthwiseProblem(GetParam(), true, activation);
    DepthwiseTensors data(p);
    for (float& x : data.weight) x *= 10;  // so that 6 is reached, too
    EXPECT_LT(
        RelativeError(RunDepthwise(p, data, Direction::kForward).blob, ExpectedForward(p, data)),
        kTolerance);
  }
}

TEST_P(DepthwiseTest, BackwardData) {
  const ConvolutionProblem p = DepthwiseProblem(GetParam());
  const DepthwiseTensors data(p);
  Doubles expected(PlainElements(p.src));
  ForEachProduct(p, [&](int64_t s, int64_t w, int64_t d) {
    expected[s] += static_cast<double>(data.diff_dst[d]) * data.weight[w];
  });
  EXPECT_LT(RelativeError(RunDepthwise(p, data, Direction::kBackwardData).blob, expected),
            kTolerance);
}

TEST_P(DepthwiseTest, BackwardWeights) {
  for (const bool bias : {false, true}) {
    const ConvolutionProblem p = DepthwiseProblem(GetParam(), bias);
    const DepthwiseTensors data(p);
    Doubles diff_weight(data.weight.size()), diff_bias(bias ? p.src.C : 0);
    ForEachProduct(p, [&](int64_t s, int64_t w, int64_t d) {
      diff_weight[w] += static_cast<double>(data.src[s]) * data.diff_dst[d];
    });
    for (int64_t i = 0; bias && i < PlainElements(p.dst); ++i) {
      diff_bias[i / p.dst.plane() % p.dst.C] += data.diff_dst[i];
    }
    const Result actual = RunDepthwise(p, data, Direction::kBackwardWeights);
    EXPECT_LT(RelativeError(actual.diff_weight, diff_weight), kTolerance);
    EXPECT_LT(RelativeError(actual.diff_bias, diff_bias), kTolerance);
  }
}

TEST_P(DepthwiseTest, BothGradientsAtOnceAreTheSameBits) {
  for (const bool bias : {false, true}) {
    const ConvolutionProblem p = DepthwiseProblem(GetParam(), bias);
    const DepthwiseTensors data(p);
    Result apart = RunDepthwise(p, data, Direction::kBackwardWeights);
    apart.blob = RunDepthwise(p, data, Direction::kBackwardData).blob;
    EXPECT_EQ(RunDepthwise(p, data, Direction::kBackward), apart);
  }
}

TEST_P(DepthwiseTest, TheSameBitsWithAnyNumberOfThreads) {
  const ConvolutionProblem p = DepthwiseProblem(GetParam());
  const DepthwiseTensors data(p);
  for (const auto direction : kDirections) {
    const Result one = RunDepthwise(p, data, direction);
    EXPECT_EQ(RunDepthwise(p, data, direction, {.threads = 2}), one);
    EXPECT_EQ(RunDepthwise(p, data, direction, {.threads = 5}), one);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, DepthwiseTest, testing::ValuesIn(DepthwiseCases()));

TEST(DepthwiseConvolutionTest, ANanPassesTheActivation) {
  for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kRelu6}) {
    const ConvolutionProblem p =
        DepthwiseProblem({3, 1, 1, 16, 20, 20, 1, 1, 1, 1}, false, activation);
    DepthwiseTensors data(p);
    data.src[3 * p.src.plane() + 10 * 20 + 10] = NAN;  // channel 3, row 10, column 10
    data.src[5 * p.src.plane()] = NAN;                 // channel 5, the first pixel
    const std::vector<float> dst = RunDepthwise(p, data, Direction::kForward).blob;
    int64_t nans = 0;
    for (const float x : dst) nans += std::isnan(x);
    EXPECT_EQ(nans, 9 + 4);
    for (int64_t y = 9; y <= 11; ++y) {
      for (int64_t x = 9; x <= 11; ++x) {
        EXPECT_TRUE(std::isnan(dst[3 * p.dst.plane() + y * 20 + x]));
      }
    }
  }
}

// Padding is not a zero that is multiplied: an infinite weight must not make NaNs at the border.
TEST(DepthwiseConvolutionTest, PaddingIsNotMultiplied) {
  const ConvolutionProblem p = DepthwiseProblem({3, 1, 1, 16, 6, 6, 1, 1, 1, 1}, false);
  DepthwiseTensors data(p);
  std::fill(data.src.begin(), data.src.end(), 1.0f);
  std::fill(data.weight.begin(), data.weight.end(), std::numeric_limits<float>::infinity());
  for (const float x : RunDepthwise(p, data, Direction::kForward).blob) EXPECT_FALSE(std::isnan(x));
}

TEST(DepthwiseConvolutionTest, IsNullWhereUnsupported) {
  const DepthwiseCase good = {3, 2, 1, 32, 8, 8, 1, 1, 1, 1};
  const auto created = [](const ConvolutionProblem& p) {
    return CreateDepthwise(p, Direction::kForward) != nullptr;
  };
  const ConvolutionProblem p = DepthwiseProblem(good);
  EXPECT_TRUE(created(p));
  ConvolutionProblem q = p;
  q.groups = 16;
  EXPECT_FALSE(created(q));
  q = p;
  q.dst.C = 64;  // two filters per channel
  EXPECT_FALSE(created(q));
  q = p;
  q.src.block = 1;
  EXPECT_FALSE(created(q));
  q = p;
  q.dst.block = 24 - p.dst.block;
  EXPECT_FALSE(created(q));
  q = p;
  q.window.KW = 5;
  EXPECT_FALSE(created(q));
  q = p;
  q.window.SH = 1;
  EXPECT_FALSE(created(q));
  q = p;
  q.window.DW = 2;
  EXPECT_FALSE(created(q));
  EXPECT_FALSE(created(DepthwiseProblem({7, 1, 1, 32, 8, 8, 3, 3, 3, 3})));
  EXPECT_FALSE(created(DepthwiseProblem({3, 3, 1, 32, 8, 8, 1, 1, 1, 1})));
}

}  // namespace
}  // namespace ringtail
