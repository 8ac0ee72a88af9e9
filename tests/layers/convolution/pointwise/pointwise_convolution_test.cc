// 1x1 convolutions in three directions against the definition in double precision.
#include "layers/convolution/pointwise/pointwise_convolution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/parallel_for.h"
#include "layers/kernels/pointwise.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

using Direction = ConvolutionDirection;

struct Case {
  int64_t N, C, K, H, W;
  int64_t stride_h = 1, stride_w = 1;
  bool bias = false;
  Activation activation = Activation::kNone;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.N << "x" << c.C << "x" << c.H << "x" << c.W << " to " << c.K
             << " channels, stride " << c.stride_h << " " << c.stride_w << (c.bias ? ", bias" : "")
             << ", activation " << static_cast<int>(c.activation);
}

ConvolutionProblem MakeProblem(const Case& c) {
  const int64_t lanes = RT_KERNEL(PointwiseLanes)();
  ConvolutionProblem problem;
  problem.window.SH = c.stride_h;
  problem.window.SW = c.stride_w;
  problem.src = {c.N, c.C, c.H, c.W, lanes};
  problem.dst = {c.N, c.K, (c.H - 1) / c.stride_h + 1, (c.W - 1) / c.stride_w + 1, lanes};
  problem.bias = c.bias;
  problem.activation = c.activation;
  return problem;
}

// All tensors of a problem; blobs in its layouts, with padding channels of zero.
class PointwiseTest : public testing::TestWithParam<Case> {
 protected:
  PointwiseTest() : problem_(MakeProblem(GetParam())) {
    const BlobDesc &s = problem_.src, &d = problem_.dst;
    src_ = Blob(s, 1, -1, 2);
    diff_dst_ = Blob(d, 2, -1, 1);
    weight_ = RandomPlain({1, d.C * s.C}, 3, -1, 1);
    bias_ = RandomPlain({1, d.C}, 4, -1, 1);
  }

  static std::vector<float> Blob(const BlobDesc& desc, uint64_t seed, float low, float high) {
    std::vector<float> blob(desc.elements());
    CopyToLayout(RandomPlain(desc, seed, low, high), desc, blob.data());
    return blob;
  }

  static int64_t At(const BlobDesc& d, int64_t n, int64_t c, int64_t pixel) {
    return ((n * d.channel_blocks() + c / d.block) * d.plane() + pixel) * d.block + c % d.block;
  }

  // Calls fn(src offset, weight offset, dst offset) for every product in the definition.
  template <typename Fn>
  void ForEachProduct(const Fn& fn) const {
    const BlobDesc &s = problem_.src, &d = problem_.dst;
    for (int64_t n = 0; n < d.N; ++n)
      for (int64_t k = 0; k < d.C; ++k)
        for (int64_t c = 0; c < s.C; ++c)
          for (int64_t y = 0; y < d.H; ++y) {
            const int64_t src_row = At(s, n, c, y * problem_.window.SH * s.W);
            const int64_t dst_row = At(d, n, k, y * d.W);
            for (int64_t x = 0; x < d.W; ++x) {
              fn(src_row + x * problem_.window.SW * s.block, k * s.C + c, dst_row + x * d.block);
            }
          }
  }

  // The results of one direction; diff_bias follows diff_weight.
  std::vector<float> Run(Direction direction, int threads) const {
    const int before = NumComputeThreads();
    SetNumComputeThreads(threads);
    const std::unique_ptr<ConvolutionAlgorithm> algorithm = CreatePointwise(problem_, direction);
    AlignedBuffer scratch(algorithm->scratch_bytes());
    std::fill(scratch.floats().begin(), scratch.floats().end(), NAN);
    const bool weights = direction == Direction::kBackwardWeights;
    const int64_t elements = direction == Direction::kForward        ? problem_.dst.elements()
                             : direction == Direction::kBackwardData ? problem_.src.elements()
                                                                     : weight_.size();
    // Aligned as a net's memory is: what is large is then written past the caches.
    const size_t size = elements + (weights && problem_.bias ? bias_.size() : 0);
    AlignedBuffer memory(size * sizeof(float));
    const std::span<float> out = memory.floats().first(size);
    std::ranges::fill(out, NAN);
    ConvolutionTensors tensors = {.scratch = scratch.data()};
    if (direction != Direction::kBackwardData) tensors.src = src_.data();
    if (direction != Direction::kForward) tensors.diff_dst = diff_dst_.data();
    if (weights) {
      tensors.diff_weight = out.data();
      if (problem_.bias) tensors.diff_bias = out.data() + elements;
    } else {
      tensors.weight = weight_.data();
      (direction == Direction::kForward ? tensors.dst : tensors.diff_src) = out.data();
    }
    if (direction == Direction::kForward && problem_.bias) tensors.bias = bias_.data();
    algorithm->Run(tensors);
    SetNumComputeThreads(before);
    return {out.begin(), out.end()};
  }

  double Activate(double x) const {
    if (problem_.activation == Activation::kNone) return x;
    return std::min(std::max(x, 0.0), problem_.activation == Activation::kRelu6 ? 6.0 : INFINITY);
  }

  std::vector<double> ExpectedForward() const {
    const BlobDesc& d = problem_.dst;
    std::vector<double> expected(d.elements());
    ForEachProduct([&](int64_t s, int64_t w, int64_t to) {
      expected[to] += static_cast<double>(src_[s]) * weight_[w];
    });
    for (int64_t n = 0; n < d.N; ++n)
      for (int64_t k = 0; k < d.C; ++k)
        for (int64_t pixel = 0; pixel < d.plane(); ++pixel) {
          double& x = expected[At(d, n, k, pixel)];
          x = Activate(x + (problem_.bias ? bias_[k] : 0));
        }
    return expected;
  }

  // Close in norm, and zero where zero is expected: in padding channels.
  static void ExpectClose(const std::vector<float>& actual, const std::vector<double>& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    double error = 0, norm = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
      norm += expected[i] * expected[i];
      if (expected[i] == 0) {
        ASSERT_LT(std::abs(actual[i]), 1e-5) << i;
      }
    }
    EXPECT_LT(std::sqrt(error / norm), 1e-6);
  }

  static void ExpectPaddingIsZero(const BlobDesc& desc, const std::vector<float>& blob) {
    for (int64_t n = 0; n < desc.N; ++n)
      for (int64_t c = desc.C; c < desc.channel_blocks() * desc.block; ++c)
        for (int64_t pixel = 0; pixel < desc.plane(); ++pixel) {
          ASSERT_EQ(blob[At(desc, n, c, pixel)], 0) << "channel " << c;
        }
  }

  ConvolutionProblem problem_;
  std::vector<float> src_, diff_dst_, weight_, bias_;
};

TEST_P(PointwiseTest, Forward) {
  const std::vector<float> actual = Run(Direction::kForward, 1);
  ExpectClose(actual, ExpectedForward());
  ExpectPaddingIsZero(problem_.dst, actual);
}

TEST_P(PointwiseTest, BackwardData) {
  std::vector<double> expected(problem_.src.elements());
  ForEachProduct([&](int64_t s, int64_t w, int64_t d) {
    expected[s] += static_cast<double>(diff_dst_[d]) * weight_[w];
  });
  const std::vector<float> actual = Run(Direction::kBackwardData, 1);
  ExpectClose(actual, expected);
  ExpectPaddingIsZero(problem_.src, actual);
}

TEST_P(PointwiseTest, BackwardWeights) {
  const BlobDesc& d = problem_.dst;
  std::vector<double> expected(weight_.size() + (problem_.bias ? d.C : 0));
  ForEachProduct([&](int64_t s, int64_t w, int64_t to) {
    expected[w] += static_cast<double>(src_[s]) * diff_dst_[to];
  });
  if (problem_.bias) {
    for (int64_t n = 0; n < d.N; ++n)
      for (int64_t k = 0; k < d.C; ++k)
        for (int64_t pixel = 0; pixel < d.plane(); ++pixel) {
          expected[weight_.size() + k] += diff_dst_[At(d, n, k, pixel)];
        }
  }
  ExpectClose(Run(Direction::kBackwardWeights, 1), expected);
}

TEST_P(PointwiseTest, TheSameBitsWithAnyNumberOfThreads) {
  for (const Direction direction :
       {Direction::kForward, Direction::kBackwardData, Direction::kBackwardWeights}) {
    const std::vector<float> one = Run(direction, 1);
    for (const int threads : {2, 5}) {
      const std::vector<float> many = Run(direction, threads);
      EXPECT_EQ(std::memcmp(many.data(), one.data(), one.size() * sizeof(float)), 0) << threads;
    }
  }
}

TEST_P(PointwiseTest, NanPasses) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const BlobDesc &s = problem_.src, &d = problem_.dst;
  const int64_t n = d.N - 1, c = s.C - 1, k = d.C - 1;
  src_[At(s, n, c, 0)] = kNan;
  diff_dst_[At(d, n, k, 0)] = kNan;
  const std::vector<float> dst = Run(Direction::kForward, 2);
  const std::vector<float> diff_src = Run(Direction::kBackwardData, 2);
  const std::vector<float> diff_weight = Run(Direction::kBackwardWeights, 2);
  for (int64_t i = 0; i < d.C; ++i) EXPECT_TRUE(std::isnan(dst[At(d, n, i, 0)])) << i;
  for (int64_t i = 0; i < s.C; ++i) EXPECT_TRUE(std::isnan(diff_src[At(s, n, i, 0)])) << i;
  for (int64_t i = 0; i < s.C; ++i) EXPECT_TRUE(std::isnan(diff_weight[k * s.C + i])) << i;
  for (int64_t i = 0; i < d.C; ++i) EXPECT_TRUE(std::isnan(diff_weight[i * s.C + c])) << i;
  if (problem_.bias) {
    EXPECT_TRUE(std::isnan(diff_weight[weight_.size() + k]));
  }
  if (d.plane() > 1) {
    EXPECT_FALSE(std::isnan(dst[At(d, n, 0, 1)]));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, PointwiseTest,
    testing::Values(
        Case{2, 16, 16, 4, 4}, Case{1, 32, 32, 7, 7},
        Case{3, 24, 40, 5, 3, 1, 1, true, Activation::kRelu},    // tails of channels and pixels
        Case{2, 40, 24, 1, 1, 1, 1, true, Activation::kRelu6},   // one pixel
        Case{1, 3, 5, 13, 11, 1, 1, true},                       // less than a block
        Case{2, 24, 144, 28, 28}, Case{2, 144, 24, 28, 28},      // planes that are cut
        Case{9, 96, 576, 7, 7, 1, 1, true, Activation::kRelu6},  // runs over several samples
        Case{1, 700, 330, 3, 5, 1, 1, true, Activation::kRelu},  // several passes; tiles
        Case{2, 1300, 50, 3, 3},                                 // three passes
        Case{8, 64, 72, 12, 12},                                 // slots
        Case{2, 24, 40, 9, 7, 2, 2, true, Activation::kRelu},    // strides
        Case{3, 32, 48, 8, 8, 2, 2}, Case{1, 16, 20, 5, 10, 3, 2},
        Case{1, 16, 48, 300, 300, 1, 1, true, Activation::kRelu6},  // larger than the caches
        Case{1, 48, 24, 300, 300}));

TEST(CreatePointwiseTest, RefusesWhatItCannot) {
  const ConvolutionProblem good = MakeProblem({2, 16, 32, 6, 6});
  const auto supported = [](const ConvolutionProblem& problem) {
    return CreatePointwise(problem, Direction::kForward) != nullptr;
  };
  EXPECT_TRUE(supported(good));
  ConvolutionProblem bad = good;
  bad.window.KW = 3;
  EXPECT_FALSE(supported(bad));
  bad = good;
  bad.window.PB = 1;
  EXPECT_FALSE(supported(bad));
  bad = good;
  bad.groups = 2;
  EXPECT_FALSE(supported(bad));
  bad = good;
  bad.src.block = 1;
  EXPECT_FALSE(supported(bad));
  bad = good;
  bad.dst.block = good.dst.block == 16 ? 8 : 16;
  EXPECT_FALSE(supported(bad));
}

}  // namespace
}  // namespace ringtail
