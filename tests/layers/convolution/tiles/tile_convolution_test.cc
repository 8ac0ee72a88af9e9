// Convolutions by tiles (AMX) and by pairs (vdpbf16ps) beside the definition in double precision: strips
// of rows and of images, strides, phases without taps; and what they do for the batch norms next to
// them. Only machines with these instructions have the algorithms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/parallel_for.h"
#include "layers/convolution/tiles/has_tiles.h"
#include "layers/convolution/tiles/tile_convolution.h"
#include "layers/convolution/tiles/tile_weights.h"
#include "layers/element_types/bf16_unit.h"
#include "layers/kernels/bf16/bf16_products.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

using Direction = ConvolutionDirection;
using Floats = std::vector<float>;

// A bf16 blob is rounded once (1.7e-3); sums of exact products in f32 are not rounded further.
constexpr double kBlobTolerance = 2.5e-3, kSumTolerance = 1e-5;

struct Case {
  int64_t kernel, stride, padding;
  int64_t N, C, H, W, K;
  bool bias = false;
  Activation activation = Activation::kNone;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.N << "x" << c.C << "x" << c.H << "x" << c.W << " to " << c.K << ", kernel "
             << c.kernel << " stride " << c.stride << " padding " << c.padding;
}

ConvolutionProblem ProblemOf(const Case& c) {
  ConvolutionProblem p;
  p.window = {c.kernel, c.kernel, c.stride, c.stride, c.padding, c.padding, c.padding, c.padding};
  const auto out = [&](int64_t size) { return (size + 2 * c.padding - c.kernel) / c.stride + 1; };
  p.src = {c.N, c.C, c.H, c.W, 16, BlobType::kBf16};
  p.dst = {c.N, c.K, out(c.H), out(c.W), 16, BlobType::kBf16};
  p.bias = c.bias;
  p.activation = c.activation;
  return p;
}

Floats Rounded(const BlobDesc& desc, uint64_t seed) {
  Floats values = RandomPlain({desc.N, desc.C, desc.H, desc.W}, seed);
  for (float& value : values) value = Widen(Narrow(value));
  return values;
}

double Error(const Floats& actual, const std::vector<double>& expected) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    difference += std::pow(actual[i] - expected[i], 2);
    norm += std::pow(expected[i], 2);
  }
  return std::sqrt(difference / norm);
}

struct Options {
  int threads = 1;
  bool affine = false, moments = false, add = false, sums = false;
};

class TileConvolutionTest : public testing::TestWithParam<std::tuple<Case, Bf16Unit>> {
 protected:
  TileConvolutionTest() : p_(ProblemOf(shape())) {
    weights_ = {shape().K, shape().C, shape().kernel, shape().kernel};
    src_ = Rounded(p_.src, 1);
    diff_dst_ = Rounded(p_.dst, 2);
    weight_ = Rounded(weights_, 3);
    bias_ = Rounded({1, shape().K}, 4);
    const int64_t channels = p_.src.channel_blocks() * 16;
    mean_.assign(channels, 0), scale_ = shift_ = mean_;
    for (int64_t c = 0; c < shape().C; ++c) {
      mean_[c] = 0.125F * static_cast<float>(c % 5);
      scale_[c] = 0.5F + 0.25F * static_cast<float>(c % 4);
      shift_[c] = 0.0625F * static_cast<float>(c % 7) - 0.125F;
    }
  }
  void SetUp() override {
    const bool has = unit() == Bf16Unit::kTiles ? HasBf16Tiles() : RT_KERNEL(HasBf16Products)();
    if (!has) GTEST_SKIP() << "no such instruction";
  }
  ~TileConvolutionTest() override { SetNumComputeThreads(threads_before_); }

  static const Case& shape() { return std::get<0>(GetParam()); }
  static Bf16Unit unit() { return std::get<1>(GetParam()); }
  static std::unique_ptr<ConvolutionAlgorithm> Create(const ConvolutionProblem& problem,
                                                      Direction direction) {
    if (direction == Direction::kBackwardWeights) {
      return std::make_unique<TileWeights>(problem, unit());
    }
    return std::make_unique<TileConvolution>(problem, direction, unit());
  }

  ChannelAffine Map() const { return {mean_.data(), scale_.data(), shift_.data(), 0, 6}; }
  Floats MappedSrc() const {
    Floats mapped = src_;
    const int64_t plane = p_.src.plane();
    for (int64_t i = 0; i < std::ssize(mapped); ++i) {
      const int64_t c = i / plane % p_.src.C;
      const float y = (mapped[i] - mean_[c]) * scale_[c] + shift_[c];
      mapped[i] = Widen(Narrow(std::clamp(y, 0.0F, 6.0F)));
    }
    return mapped;
  }

  struct Result {
    Floats out;
    std::vector<double> mean, m2;
    int64_t part_pixels = 0;
    bool operator==(const Result&) const = default;
  };

  Result Run(Direction direction, const Options& options = {}) const {
    SetNumComputeThreads(options.threads);
    ConvolutionProblem problem = p_;
    problem.src_is_affine = options.affine;
    const bool is_weights = direction == Direction::kBackwardWeights;
    const auto algorithm = Create(problem, direction);
    AlignedBuffer src(p_.src.bytes()), dst(p_.dst.bytes()), scratch(algorithm->scratch_bytes());
    // Whatever was there before must not matter.
    std::ranges::fill(scratch.floats(), NAN);
    CopyToLayout(src_, p_.src, src.floats().data());
    CopyToLayout(diff_dst_, p_.dst, dst.floats().data());
    Result result;
    ConvolutionTensors t{.scratch = scratch.data()};
    if (options.affine) t.src_affine = Map();
    if (options.moments) {
      BlobMoments shape = {{.part_pixels = algorithm->moments_pixels()}};
      result.part_pixels = shape.part_pixels;
      result.mean.resize(shape.elements(p_.dst)), result.m2 = result.mean;
      shape.mean = result.mean.data(), shape.m2 = result.m2.data();
      t.dst_moments = shape;
    }
    AlignedBuffer norm_src(p_.src.bytes());
    if (options.sums) {
      BlobGradientSums shape = {{.part_pixels = algorithm->gradient_sums_pixels()}};
      result.part_pixels = shape.part_pixels;
      result.mean.resize(shape.elements(p_.src)), result.m2 = result.mean;
      shape.g = result.mean.data(), shape.gx = result.m2.data();
      t.diff_src_sums = shape;
      t.src_affine = Map();
      CopyToLayout(src_, p_.src, norm_src.floats().data());
      t.src = norm_src.floats().data();
    }
    Floats diff_weight(weight_.size(), NAN), diff_bias(bias_.size(), NAN);
    if (is_weights) {
      t.src = src.floats().data(), t.diff_dst = dst.floats().data();
      t.diff_weight = diff_weight.data();
      if (p_.bias) t.diff_bias = diff_bias.data();
      algorithm->Run(t);
      result.out = diff_weight;
      if (p_.bias) result.out.insert(result.out.end(), diff_bias.begin(), diff_bias.end());
      return result;
    }
    t.weight = weight_.data();
    if (direction == Direction::kForward) {
      t.src = src.floats().data(), t.dst = dst.floats().data();
      if (p_.bias) t.bias = bias_.data();
      algorithm->Run(t);
      result.out = CopyToPlain(p_.dst, t.dst);
    } else {
      t.diff_dst = dst.floats().data(), t.diff_src = src.floats().data();
      t.add_to_diff_src = options.add;
      algorithm->Run(t);
      result.out = CopyToPlain(p_.src, t.diff_src);
    }
    return result;
  }

  template <typename Fn>
  void ForEachProduct(const Fn& fn) const {
    const Window& w = p_.window;
    const BlobDesc &s = p_.src, &d = p_.dst;
    for (int64_t n = 0; n < d.N; ++n)
      for (int64_t k = 0; k < d.C; ++k)
        for (int64_t y = 0; y < d.H; ++y)
          for (int64_t x = 0; x < d.W; ++x)
            for (int64_t c = 0; c < s.C; ++c)
              for (int64_t tap = 0; tap < w.KH * w.KW; ++tap) {
                const int64_t sy = y * w.SH + tap / w.KW - w.PT, sx = x * w.SW + tap % w.KW - w.PL;
                if (sy < 0 || sy >= s.H || sx < 0 || sx >= s.W) continue;
                fn(((n * s.C + c) * s.H + sy) * s.W + sx, (k * s.C + c) * w.KH * w.KW + tap,
                   ((n * d.C + k) * d.H + y) * d.W + x);
              }
  }
  std::vector<double> Forward(const Floats& src) const {
    std::vector<double> sums(diff_dst_.size());
    ForEachProduct([&](int64_t s, int64_t w, int64_t d) { sums[d] += 1.0 * src[s] * weight_[w]; });
    for (size_t i = 0; i < sums.size(); ++i) {
      if (p_.bias) sums[i] += bias_[static_cast<int64_t>(i) / p_.dst.plane() % p_.dst.C];
      sums[i] = std::clamp<double>(sums[i], LowerBound(p_.activation), UpperBound(p_.activation));
    }
    return sums;
  }
  std::vector<double> DiffWeight(const Floats& src) const {
    std::vector<double> sums(weight_.size());
    ForEachProduct(
        [&](int64_t s, int64_t w, int64_t d) { sums[w] += 1.0 * src[s] * diff_dst_[d]; });
    if (!p_.bias) return sums;
    sums.resize(weight_.size() + bias_.size());
    for (size_t i = 0; i < diff_dst_.size(); ++i) {
      sums[weight_.size() + i / p_.dst.plane() % p_.dst.C] += diff_dst_[i];
    }
    return sums;
  }

  const ConvolutionProblem p_;
  const int threads_before_ = NumComputeThreads();
  BlobDesc weights_;
  Floats src_, diff_dst_, weight_, bias_, mean_, scale_, shift_;
};

TEST_P(TileConvolutionTest, IsTheDefinition) {
  EXPECT_LT(Error(Run(Direction::kForward).out, Forward(src_)), kBlobTolerance);
  EXPECT_LT(Error(Run(Direction::kBackwardWeights).out, DiffWeight(src_)), kSumTolerance);
  std::vector<double> diff_src(src_.size());
  ForEachProduct(
      [&](int64_t s, int64_t w, int64_t d) { diff_src[s] += 1.0 * diff_dst_[d] * weight_[w]; });
  EXPECT_LT(Error(Run(Direction::kBackwardData).out, diff_src), kBlobTolerance);
  for (size_t i = 0; i < diff_src.size(); ++i) diff_src[i] += src_[i];
  EXPECT_LT(Error(Run(Direction::kBackwardData, {.add = true}).out, diff_src), kBlobTolerance);
}

TEST_P(TileConvolutionTest, MapsSrcOnTheWay) {
  const Floats mapped = MappedSrc();
  EXPECT_LT(Error(Run(Direction::kForward, {.affine = true}).out, Forward(mapped)), kBlobTolerance);
  EXPECT_LT(Error(Run(Direction::kBackwardWeights, {.affine = true}).out, DiffWeight(mapped)),
            kSumTolerance);
}

TEST_P(TileConvolutionTest, TakesTheMomentsOfDst) {
  const Result result = Run(Direction::kForward, {.moments = true});
  EXPECT_EQ(result.out, Run(Direction::kForward).out);
  const BlobMoments shape = {{.part_pixels = result.part_pixels}};
  const BlobDesc& dst = p_.dst;
  for (int64_t n = 0; n < dst.N; ++n) {
    for (int64_t part = 0; part < shape.parts(dst); ++part) {
      for (int64_t k = 0; k < dst.C; ++k) {
        const float* plane = result.out.data() + (n * dst.C + k) * dst.plane();
        const int64_t first = part * shape.part_pixels, pixels = shape.PixelsOf(dst, part);
        double mean = 0, m2 = 0;
        for (int64_t i = first; i < first + pixels; ++i) mean += plane[i];
        mean /= static_cast<double>(pixels);
        for (int64_t i = first; i < first + pixels; ++i) m2 += std::pow(plane[i] - mean, 2);
        const int64_t at = shape.At(dst, n, part, k / 16) + k % 16;
        ASSERT_NEAR(result.mean[at], mean, 1e-5) << n << " " << part << " " << k;
        ASSERT_NEAR(result.m2[at], m2, 1e-4 * (1 + m2)) << n << " " << part << " " << k;
      }
    }
  }
}

// Sums of what is written, over the pixels that the map's clamp lets through.
TEST_P(TileConvolutionTest, TakesTheSumsOfDiffSrc) {
  if (shape().stride > 1) {
    EXPECT_EQ(Create(p_, Direction::kBackwardData)->gradient_sums_pixels(), 0);
    return;
  }
  const Result result = Run(Direction::kBackwardData, {.sums = true});
  EXPECT_EQ(result.out, Run(Direction::kBackwardData).out);
  const BlobGradientSums shape = {{.part_pixels = result.part_pixels}};
  const BlobDesc& src = p_.src;
  for (int64_t n = 0; n < src.N; ++n) {
    for (int64_t part = 0; part < shape.parts(src); ++part) {
      for (int64_t c = 0; c < src.C; ++c) {
        const int64_t first = (n * src.C + c) * src.plane() + part * shape.part_pixels;
        double g = 0, gx = 0;
        for (int64_t i = first; i < first + shape.PixelsOf(src, part); ++i) {
          const float y = (src_[i] - mean_[c]) * scale_[c] + shift_[c];
          if (y <= 0 || y >= 6) continue;
          g += result.out[i];
          gx += result.out[i] * (src_[i] - mean_[c]);
        }
        const int64_t at = shape.At(src, n, part, c / 16) + c % 16;
        ASSERT_NEAR(result.mean[at], g, 1e-3) << n << " " << part << " " << c;
        ASSERT_NEAR(result.m2[at], gx, 1e-3) << n << " " << part << " " << c;
      }
    }
  }
}

TEST_P(TileConvolutionTest, TheSameBitsWithAnyNumberOfThreads) {
  for (const Direction direction :
       {Direction::kForward, Direction::kBackwardData, Direction::kBackwardWeights}) {
    const Floats one = Run(direction).out;
    EXPECT_EQ(Run(direction, {.threads = 2}).out, one);
    EXPECT_EQ(Run(direction, {.threads = 5}).out, one);
  }
}

// The best instruction of the machine is a candidate, and none without one.
TEST(TileConvolutionCreate, ByTheBestInstruction) {
  const ConvolutionProblem problem = ProblemOf({3, 2, 1, 2, 32, 13, 12, 48});
  const Bf16Unit best = BestBf16Unit();
  EXPECT_EQ(best == Bf16Unit::kTiles, HasBf16Tiles());
  EXPECT_EQ(best == Bf16Unit::kPairs, !HasBf16Tiles() && RT_KERNEL(HasBf16Products)());
  const auto data = TileConvolution::Create(problem, Direction::kForward);
  const auto weights = TileWeights::Create(problem, Direction::kBackwardWeights);
  EXPECT_EQ(data == nullptr, best == Bf16Unit::kNone);
  EXPECT_EQ(weights == nullptr, best == Bf16Unit::kNone);
  if (best == Bf16Unit::kNone) return;
  EXPECT_EQ(data->name(), best == Bf16Unit::kTiles ? "tiles bf16" : "direct bf16");
  EXPECT_EQ(weights->name(), data->name());
}

constexpr auto kRelu = Activation::kRelu;

INSTANTIATE_TEST_SUITE_P(
    Shapes, TileConvolutionTest,
    testing::Combine(testing::Values(
                         // 1x1: blocks of channels that are not pairs, that are not full.
                         Case{1, 1, 0, 2, 16, 7, 7, 16},
                         Case{1, 1, 0, 5, 48, 7, 7, 80, true, kRelu},
                         Case{1, 1, 0, 2, 17, 5, 6, 33}, Case{1, 2, 0, 3, 32, 9, 8, 48},
                         Case{1, 3, 0, 2, 32, 7, 7, 16},
                         // 3x3: small images together, and strips of large ones.
                         Case{3, 1, 1, 17, 32, 4, 4, 32}, Case{3, 1, 1, 2, 48, 56, 57, 32, true},
                         Case{3, 1, 0, 1, 16, 3, 3, 16}, Case{3, 1, 1, 1, 320, 7, 7, 48},
                         Case{3, 2, 1, 2, 32, 13, 12, 48, true, kRelu},
                         Case{3, 2, 1, 2, 16, 9, 2, 32}, Case{3, 1, 1, 1, 16, 90, 100, 16},
                         // Others.
                         Case{5, 1, 2, 2, 16, 9, 11, 32}, Case{5, 3, 2, 2, 16, 14, 13, 16},
                         Case{2, 2, 0, 2, 32, 8, 6, 16}, Case{7, 2, 3, 1, 16, 30, 33, 16}),
                     testing::Values(Bf16Unit::kTiles, Bf16Unit::kPairs)));

}  // namespace
}  // namespace ringtail
