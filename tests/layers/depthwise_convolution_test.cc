// Depthwise convolution's directions against the definition in double precision; what is fused into
// them, against the same done before or after, bit for bit.
#include "layers/convolution/depthwise_convolution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <ostream>
#include <span>
#include <vector>

#include "core/parallel_for.h"
#include "layers/kernels/depthwise.h"
#include "tests/layers/layer_runner.h"
#include "tests/layers/test_affine.h"
#include "tests/layers/test_gradient.h"
#include "tests/layers/test_sums.h"

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
  Doubles mean, m2;                                 // of dst
  Doubles g, gx;                                    // of diff_src
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

enum class Mapped { kNot, kOnTheWay, kBefore };

struct Options {
  int threads = 1;
  Mapped src = Mapped::kNot, diff_dst = Mapped::kNot;
  bool moments = false;
  bool sums = false;  // of diff_src; src comes mapped on the way
};

// The memory of one call, full of NaN and guarded, and what comes of it.
class Call {
 public:
  Call(const ConvolutionProblem& p, const Data& data, Direction direction, const Options& options)
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

  Result Run() {
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
    if (options_.src == Mapped::kBefore) affine_.Apply(p_.src, src_.floats());
    if (options_.src == Mapped::kOnTheWay) t_.src_affine = affine_.affine();
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
    if (options_.diff_dst == Mapped::kBefore) gradient_.Apply(dst_.floats());
    if (options_.diff_dst == Mapped::kOnTheWay) t_.diff_dst_map = gradient_.gradient();
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
  const Data& data_;
  const Options options_;
  std::unique_ptr<ConvolutionAlgorithm> algorithm_;
  GuardedBuffer src_, dst_, diff_src_, scratch_;  // dst_: dst or diff_dst
  TestAffine affine_;
  TestGradient gradient_;
  const bool forward_, data_wanted_, weights_wanted_;
  ConvolutionTensors t_;
  Result result_;
};

Result RunOnce(const ConvolutionProblem& p, const Data& data, Direction direction,
               const Options& options = {}) {
  const int before = NumComputeThreads();
  SetNumComputeThreads(options.threads);
  const Result result = Call(p, data, direction, options).Run();
  SetNumComputeThreads(before);
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

constexpr Direction kDirections[] = {Direction::kForward, Direction::kBackwardData,
                                     Direction::kBackwardWeights, Direction::kBackward};

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

TEST_P(DepthwiseTest, BothGradientsAtOnceAreTheSameBits) {
  for (const bool bias : {false, true}) {
    const ConvolutionProblem p = MakeProblem(GetParam(), bias);
    const Data data(p);
    Result apart = RunOnce(p, data, Direction::kBackwardWeights);
    apart.blob = RunOnce(p, data, Direction::kBackwardData).blob;
    EXPECT_EQ(RunOnce(p, data, Direction::kBackward), apart);
  }
}

TEST_P(DepthwiseTest, MapsInputsToTheSameBits) {
  const ConvolutionProblem p = MakeProblem(GetParam());
  const Data data(p);
  for (const auto direction : kDirections) {
    for (const bool src : {false, true}) {
      for (const bool diff_dst : {false, true}) {
        if (diff_dst && direction == Direction::kForward) continue;
        if (src && direction == Direction::kBackwardData) continue;
        const auto options = [&](int threads, Mapped how) {
          return Options{.threads = threads,
                         .src = src ? how : Mapped::kNot,
                         .diff_dst = diff_dst ? how : Mapped::kNot};
        };
        const Result before = RunOnce(p, data, direction, options(1, Mapped::kBefore));
        EXPECT_EQ(RunOnce(p, data, direction, options(1, Mapped::kOnTheWay)), before);
        EXPECT_EQ(RunOnce(p, data, direction, options(2, Mapped::kOnTheWay)), before);
      }
    }
  }
}

TEST_P(DepthwiseTest, TakesTheMomentsOfDst) {
  for (const Activation activation : {Activation::kNone, Activation::kRelu}) {
    const ConvolutionProblem p = MakeProblem(GetParam(), true, activation);
    const Data data(p);
    const Result actual = RunOnce(p, data, Direction::kForward, {.moments = true});
    EXPECT_EQ(actual.blob, RunOnce(p, data, Direction::kForward).blob);
    EXPECT_EQ(actual, RunOnce(p, data, Direction::kForward, {.threads = 2, .moments = true}));
    GuardedBuffer dst(p.dst.bytes());
    CopyToLayout(actual.blob, p.dst, dst.floats());
    Doubles mean(actual.mean.size()), m2(mean);  // (sample, channel), as one part is a plane
    for (size_t c = 0; c < mean.size(); c += p.dst.block) {
      RT_KERNEL(BatchNormMoments)
      (dst.floats() + c * p.dst.plane(), p.dst.plane(), p.dst.block, &mean[c], &m2[c]);
    }
    EXPECT_EQ(actual.mean, mean);
    EXPECT_EQ(actual.m2, m2);
  }
}

// Bit for bit.
void ExpectBatchNormsSums(const BlobDesc& d, const std::vector<float>& plain_src,
                          const Result& result) {
  const TestAffine affine(d);
  GuardedBuffer src(d.bytes()), diff(d.bytes());
  CopyToLayout(plain_src, d, src.floats());
  CopyToLayout(result.blob, d, diff.floats());
  Doubles g(result.g.size()), gx(g);  // (sample, channel), as one part is a plane
  for (size_t c = 0; c < g.size(); c += d.block) {
    const auto channel = static_cast<int64_t>(c) % (d.channel_blocks() * d.block);
    RT_KERNEL(BatchNormGradientSums)
    (src.floats() + c * d.plane(), diff.floats() + c * d.plane(), d.plane(), d.block,
     affine.affine().From(channel), &g[c], &gx[c]);
  }
  EXPECT_EQ(result.g, g);
  EXPECT_EQ(result.gx, gx);
}

TEST_P(DepthwiseTest, TakesTheSumsOfDiffSrc) {
  const ConvolutionProblem p = MakeProblem(GetParam());
  const Data data(p);
  for (const Mapped diff_dst : {Mapped::kNot, Mapped::kOnTheWay}) {
    Options options = {.src = Mapped::kOnTheWay, .diff_dst = diff_dst};
    const Result without = RunOnce(p, data, Direction::kBackward, options);
    options.sums = true;
    const Result with = RunOnce(p, data, Direction::kBackward, options);
    EXPECT_EQ(with.blob, without.blob);
    EXPECT_EQ(with.diff_weight, without.diff_weight);
    const TestAffine affine(p.src);
    ExpectedGradientSums(p.src, data.src, with.blob, affine.affine(), {p.src.plane()})
        .ExpectNear(with.g, with.gx);
    ExpectBatchNormsSums(p.src, data.src, with);
    options.threads = 2;
    EXPECT_EQ(RunOnce(p, data, Direction::kBackward, options), with);
  }
}

TEST_P(DepthwiseTest, TheSameBitsWithAnyNumberOfThreads) {
  const ConvolutionProblem p = MakeProblem(GetParam());
  const Data data(p);
  for (const auto direction : kDirections) {
    const Result one = RunOnce(p, data, direction);
    EXPECT_EQ(RunOnce(p, data, direction, {.threads = 2}), one);
    EXPECT_EQ(RunOnce(p, data, direction, {.threads = 5}), one);
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

// Blobs of 16 MB and more are written past the caches. The same samples fill less one by one.
TEST(DepthwiseConvolutionTest, LargeBlobsAreTheSameBits) {
  for (const int64_t stride : {1, 2}) {
    const ConvolutionProblem p = MakeProblem({3, stride, 2, 32, 257, 259, 1, 1, 1, 1});
    const ConvolutionProblem one = MakeProblem({3, stride, 1, 32, 257, 259, 1, 1, 1, 1});
    ASSERT_GE(p.src.bytes(), 16 << 20);
    const Data data(p), first(one);  // random values do not depend on their number
    const auto expect_first = [](const auto& all, const auto& part) {
      EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin()));
    };
    for (const bool moments : {false, true}) {
      const Options options = {.threads = 2, .moments = moments};
      const Result all = RunOnce(p, data, Direction::kForward, options);
      const Result part = RunOnce(one, first, Direction::kForward, options);
      expect_first(all.blob, part.blob);
      expect_first(all.mean, part.mean);
      expect_first(all.m2, part.m2);
    }
    const Options options = {.src = Mapped::kOnTheWay, .sums = true};
    const Result all = RunOnce(p, data, Direction::kBackward, options);
    const Result part = RunOnce(one, first, Direction::kBackward, options);
    expect_first(all.blob, part.blob);
    expect_first(all.g, part.g);
    expect_first(all.gx, part.gx);
  }
}

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
  const Result gradients =
      RunOnce(p, data, Direction::kBackward, {.src = Mapped::kOnTheWay, .sums = true});
  for (size_t i = 0; i < gradients.g.size(); ++i) {  // (sample, channel), as one part is a plane
    EXPECT_EQ(std::isnan(gradients.g[i]), i == 3);
    EXPECT_EQ(std::isnan(gradients.gx[i]), i == 3);
  }
  int64_t nans = 0;
  for (const float x : gradients.blob) nans += std::isnan(x);
  EXPECT_EQ(nans, 9);
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
