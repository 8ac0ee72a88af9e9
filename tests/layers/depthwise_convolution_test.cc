// Depthwise convolution's three directions against the definition in double precision.
#include "layers/convolution/depthwise_convolution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <vector>

#include "core/parallel_for.h"
#include "layers/kernels/depthwise.h"
#include "tests/layers/layer_runner.h"
#include "tests/layers/test_affine.h"

namespace ringtail {
namespace {

using Direction = ConvolutionDirection;
using Doubles = std::vector<double>;

struct Case {
  int64_t kernel, stride, N, C, H, W;
  int64_t top, left, bottom, right;  // padding
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.kernel << "x" << c.kernel << " stride " << c.stride << ", " << c.N << "x" << c.C
             << "x" << c.H << "x" << c.W << ", padding " << c.top << " " << c.left << " "
             << c.bottom << " " << c.right;
}

ConvolutionProblem MakeProblem(const Case& c, bool bias = true,
                               Activation activation = Activation::kNone) {
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

// Plain tensors of one problem.
struct Data {
  explicit Data(const ConvolutionProblem& p)
      : src(RandomPlain(p.src, 1)),
        diff_dst(RandomPlain(p.dst, 2)),
        weight(RandomPlain({1, p.src.C * p.window.KH * p.window.KW}, 3)),
        bias(RandomPlain({1, p.src.C}, 4)) {}
  std::vector<float> src, diff_dst, weight, bias;
};

struct Result {
  std::vector<float> blob, diff_weight, diff_bias;  // blob: dst or diff_src, plain
  bool operator==(const Result&) const = default;
};

void ExpectZeroPadding(const BlobDesc& desc, const float* blob) {
  BlobDesc full = desc;  // all channels of all blocks
  full.C = desc.channel_blocks() * desc.block;
  const std::vector<float> plain = CopyToPlain(full, blob);
  for (int64_t i = 0; i < static_cast<int64_t>(plain.size()); ++i) {
    if (i / desc.plane() % full.C < desc.C) continue;
    ASSERT_EQ(plain[i], 0) << "padding channel";
  }
}

enum class Src { kAsItIs, kMappedOnTheWay, kMappedBefore };

// One call, with memory full of NaN and guarded.
Result RunOnce(const ConvolutionProblem& p, const Data& data, Direction direction, int threads = 1,
               Src map_src = Src::kAsItIs) {
  const int before = NumComputeThreads();
  SetNumComputeThreads(threads);
  const auto algorithm = CreateDepthwise(p, direction);
  GuardedBuffer src(p.src.bytes()), dst(p.dst.bytes()), scratch(algorithm->scratch_bytes());
  Result result;
  ConvolutionTensors t;
  const TestAffine map(p.src);
  if (map_src == Src::kMappedOnTheWay) t.src_affine = map.affine();
  scratch.FillWithNan();
  t.scratch = scratch.data();
  if (direction == Direction::kForward) {
    CopyToLayout(data.src, p.src, src.floats());
    dst.FillWithNan();
    t.src = src.floats();
    t.weight = data.weight.data();
    if (p.bias) t.bias = data.bias.data();
    t.dst = dst.floats();
  } else {
    CopyToLayout(data.diff_dst, p.dst, dst.floats());
    t.diff_dst = dst.floats();
  }
  if (direction == Direction::kBackwardData) {
    src.FillWithNan();
    t.weight = data.weight.data();
    t.diff_src = src.floats();
  }
  if (direction == Direction::kBackwardWeights) {
    CopyToLayout(data.src, p.src, src.floats());
    result.diff_weight.assign(data.weight.size(), NAN);
    result.diff_bias.assign(p.bias ? p.src.C : 0, NAN);
    t.src = src.floats();
    t.diff_weight = result.diff_weight.data();
    if (p.bias) t.diff_bias = result.diff_bias.data();
  }
  if (map_src == Src::kMappedBefore) map.Apply(p.src, src.floats());
  algorithm->Run(t);
  SetNumComputeThreads(before);
  EXPECT_TRUE(src.GuardsIntact() && dst.GuardsIntact() && scratch.GuardsIntact());
  if (direction != Direction::kBackwardWeights) {
    const bool forward = direction == Direction::kForward;
    const BlobDesc& desc = forward ? p.dst : p.src;
    const float* blob = forward ? dst.floats() : src.floats();
    ExpectZeroPadding(desc, blob);
    result.blob = CopyToPlain(desc, blob);
  }
  return result;
}

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

Doubles ExpectedForward(const ConvolutionProblem& p, const Data& data) {
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

// |actual - expected| / |expected|, as vectors.
double RelativeError(const std::vector<float>& actual, const Doubles& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double error = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return norm == 0 ? error : std::sqrt(error / norm);
}

constexpr double kTolerance = 1e-6;

class DepthwiseTest : public testing::TestWithParam<Case> {};

TEST_P(DepthwiseTest, Forward) {
  for (const bool bias : {false, true}) {
    const ConvolutionProblem p = MakeProblem(GetParam(), bias);
    const Data data(p);
    EXPECT_LT(RelativeError(RunOnce(p, data, Direction::kForward).blob, ExpectedForward(p, data)),
              kTolerance);
  }
}

TEST_P(DepthwiseTest, ForwardWithAFusedActivation) {
  for (const Activation activation : {Activation::kRelu, Activation::kRelu6}) {
    const ConvolutionProblem p = MakeProblem(GetParam(), true, activation);
    Data data(p);
    for (float& x : data.weight) x *= 10;  // so that 6 is reached, too
    EXPECT_LT(RelativeError(RunOnce(p, data, Direction::kForward).blob, ExpectedForward(p, data)),
              kTolerance);
  }
}

TEST_P(DepthwiseTest, BackwardData) {
  const ConvolutionProblem p = MakeProblem(GetParam());
  const Data data(p);
  Doubles expected(PlainElements(p.src));
  ForEachProduct(p, [&](int64_t s, int64_t w, int64_t d) {
    expected[s] += static_cast<double>(data.diff_dst[d]) * data.weight[w];
  });
  EXPECT_LT(RelativeError(RunOnce(p, data, Direction::kBackwardData).blob, expected), kTolerance);
}

TEST_P(DepthwiseTest, BackwardWeights) {
  for (const bool bias : {false, true}) {
    const ConvolutionProblem p = MakeProblem(GetParam(), bias);
    const Data data(p);
    Doubles diff_weight(data.weight.size()), diff_bias(bias ? p.src.C : 0);
    ForEachProduct(p, [&](int64_t s, int64_t w, int64_t d) {
      diff_weight[w] += static_cast<double>(data.src[s]) * data.diff_dst[d];
    });
    for (int64_t i = 0; bias && i < PlainElements(p.dst); ++i) {
      diff_bias[i / p.dst.plane() % p.dst.C] += data.diff_dst[i];
    }
    const Result actual = RunOnce(p, data, Direction::kBackwardWeights);
    EXPECT_LT(RelativeError(actual.diff_weight, diff_weight), kTolerance);
    EXPECT_LT(RelativeError(actual.diff_bias, diff_bias), kTolerance);
  }
}

TEST_P(DepthwiseTest, MapsSrcToTheSameBits) {
  const ConvolutionProblem p = MakeProblem(GetParam());
  const Data data(p);
  for (const auto direction : {Direction::kForward, Direction::kBackwardWeights}) {
    const Result before = RunOnce(p, data, direction, 1, Src::kMappedBefore);
    EXPECT_EQ(RunOnce(p, data, direction, 1, Src::kMappedOnTheWay), before);
    EXPECT_EQ(RunOnce(p, data, direction, 2, Src::kMappedOnTheWay), before);
  }
}

TEST_P(DepthwiseTest, TheSameBitsWithAnyNumberOfThreads) {
  const ConvolutionProblem p = MakeProblem(GetParam());
  const Data data(p);
  for (const auto direction :
       {Direction::kForward, Direction::kBackwardData, Direction::kBackwardWeights}) {
    const Result one = RunOnce(p, data, direction, 1);
    EXPECT_EQ(RunOnce(p, data, direction, 2), one);
    EXPECT_EQ(RunOnce(p, data, direction, 5), one);
  }
}

// Every size up to two groups of outputs and every place of a window's edge in them.
std::vector<Case> Cases() {
  std::vector<Case> cases;
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
INSTANTIATE_TEST_SUITE_P(Shapes, DepthwiseTest, testing::ValuesIn(Cases()));

TEST(DepthwiseConvolutionTest, ANanPassesTheActivation) {
  for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kRelu6}) {
    const ConvolutionProblem p = MakeProblem({3, 1, 1, 16, 20, 20, 1, 1, 1, 1}, false, activation);
    Data data(p);
    data.src[3 * p.src.plane() + 10 * 20 + 10] = NAN;  // channel 3, row 10, column 10
    data.src[5 * p.src.plane()] = NAN;                 // channel 5, the first pixel
    const std::vector<float> dst = RunOnce(p, data, Direction::kForward).blob;
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

TEST(DepthwiseConvolutionTest, ANanPassesBackward) {
  const ConvolutionProblem p = MakeProblem({3, 2, 2, 16, 20, 20, 1, 1, 1, 1});
  Data data(p);
  data.diff_dst[3 * p.dst.plane() + 5 * 10 + 5] = NAN;  // channel 3, row 5, column 5
  int64_t nans = 0;
  for (const float x : RunOnce(p, data, Direction::kBackwardData).blob) nans += std::isnan(x);
  EXPECT_EQ(nans, 9);
  const Result gradients = RunOnce(p, data, Direction::kBackwardWeights);
  for (size_t i = 0; i < gradients.diff_weight.size(); ++i) {
    EXPECT_EQ(std::isnan(gradients.diff_weight[i]), i / 9 == 3);
  }
  for (size_t c = 0; c < gradients.diff_bias.size(); ++c) {
    EXPECT_EQ(std::isnan(gradients.diff_bias[c]), c == 3);
  }
}

// Padding is not a zero that is multiplied: an infinite weight must not make NaNs at the border.
TEST(DepthwiseConvolutionTest, PaddingIsNotMultiplied) {
  const ConvolutionProblem p = MakeProblem({3, 1, 1, 16, 6, 6, 1, 1, 1, 1}, false);
  Data data(p);
  std::fill(data.src.begin(), data.src.end(), 1.0f);
  std::fill(data.weight.begin(), data.weight.end(), std::numeric_limits<float>::infinity());
  for (const float x : RunOnce(p, data, Direction::kForward).blob) EXPECT_FALSE(std::isnan(x));
}

TEST(DepthwiseConvolutionTest, IsNullWhereUnsupported) {
  const Case good = {3, 2, 1, 32, 8, 8, 1, 1, 1, 1};
  const auto created = [](const ConvolutionProblem& p) {
    return CreateDepthwise(p, Direction::kForward) != nullptr;
  };
  const ConvolutionProblem p = MakeProblem(good);
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
  EXPECT_FALSE(created(MakeProblem({7, 1, 1, 32, 8, 8, 3, 3, 3, 3})));
  EXPECT_FALSE(created(MakeProblem({3, 3, 1, 32, 8, 8, 1, 1, 1, 1})));
}

}  // namespace
}  // namespace ringtail
