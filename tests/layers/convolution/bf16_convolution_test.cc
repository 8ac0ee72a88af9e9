// Every candidate for a convolution on bf16 blobs, in every direction, against the definition in
// double precision: on numbers that bf16 can hold, so that products are exact. Among the shapes are
// those that other libraries have got wrong in bf16: one channel, a stride above the kernel, an
// output one pixel wide, taps that see nothing but padding.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "layers/convolution/candidates.h"
#include "layers/kernels/bf16/bf16_products.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

using Direction = ConvolutionDirection;

// Relative, in the Euclidean norm: bf16 outputs are rounded once (1.7e-3), gradients of weights are
// f32 (Winograd's 4x4 tiles: 1e-5).
constexpr double kBlobTolerance = 2.5e-3, kWeightTolerance = 1e-5;
// Winograd's operands in bf16 are rounded after their transform, in every direction.
constexpr double kRoundedOperandsTolerance = 6e-3;

double ToleranceOf(const std::string& algorithm, Direction direction) {
  if (algorithm == "winograd 2x2 bf16") return kRoundedOperandsTolerance;
  return direction == Direction::kBackwardWeights ? kWeightTolerance : kBlobTolerance;
}

struct Case {
  std::string name;
  Window window;
  int64_t groups;
  BlobDesc src, dst;
  bool bias = false;
  bool f32_src = false;
};

Window Square(int64_t kernel, int64_t stride, int64_t padding) {
  return {.KH = kernel,
          .KW = kernel,
          .SH = stride,
          .SW = stride,
          .PT = padding,
          .PL = padding,
          .PB = padding,
          .PR = padding};
}

// Blobs get the blocks of the machine where channels fill them.
std::vector<Case> AllCases() {
  return {
      {"one_channel", Square(2, 1, 0), 1, {1, 1, 2, 2}, {1, 1, 1, 1}},
      {"stride_above_kernel", Square(1, 3, 0), 1, {2, 32, 7, 7}, {2, 32, 3, 3}},
      {"one_pixel_wide", Square(3, 2, 1), 1, {2, 16, 9, 2}, {2, 32, 5, 1}},
      {"first", Square(7, 2, 3), 1, {2, 3, 15, 15}, {2, 16, 8, 8}, true},
      {"image", Square(7, 2, 3), 1, {2, 3, 15, 17}, {2, 48, 8, 9}, true, true},
      {"image_large", Square(3, 1, 1), 1, {1, 3, 120, 200}, {1, 16, 120, 200}, false, true},
      {"image_small", Square(3, 1, 1), 1, {17, 3, 4, 4}, {17, 16, 4, 4}, false, true},
      {"image_stride_4", Square(11, 4, 2), 1, {3, 3, 31, 27}, {3, 64, 7, 6}, true, true},
      {"image_stride_3", Square(1, 3, 0), 1, {2, 3, 7, 7}, {2, 16, 3, 3}, false, true},
      {"image_one_channel", Square(5, 1, 0), 1, {2, 1, 12, 9}, {2, 16, 8, 5}, false, true},
      {"image_four_channels", Square(3, 1, 1), 1, {1, 4, 6, 33}, {1, 32, 6, 33}, true, true},
      {"winograd", Square(3, 1, 1), 1, {2, 32, 9, 10}, {2, 16, 9, 10}, true},
      {"winograd_odd_tiles", Square(3, 1, 1), 1, {3, 48, 5, 13}, {3, 80, 5, 13}},
      {"winograd_panels", Square(3, 1, 0), 1, {1, 320, 4, 5}, {1, 336, 2, 3}},
      {"winograd_stride_2", Square(3, 2, 1), 1, {2, 16, 13, 12}, {2, 32, 7, 6}},
      {"depthwise", Square(3, 1, 1), 32, {2, 32, 7, 9}, {2, 32, 7, 9}},
      {"pointwise_odd_plane", Square(1, 1, 0), 1, {5, 48, 7, 7}, {5, 32, 7, 7}},
      {"pointwise_long_plane", Square(1, 1, 0), 1, {2, 16, 31, 29}, {2, 80, 31, 29}},
      {"pointwise_tiles", Square(1, 1, 0), 1, {1, 304, 5, 3}, {1, 272, 5, 3}},
      {"groups", Square(3, 1, 1), 2, {1, 32, 5, 5}, {1, 32, 5, 5}},
      {"taps_in_padding", Square(3, 2, 1), 2, {5, 48, 1, 1}, {5, 32, 1, 1}},
      {"winograd_taps_in_padding", Square(3, 1, 1), 1, {5, 32, 6, 1}, {5, 32, 6, 1}},
      {"odd_channels", Square(3, 1, 0), 1, {2, 17, 6, 5}, {2, 19, 4, 3}},
  };
}

std::vector<float> RoundedPlain(const BlobDesc& desc, uint64_t seed) {
  std::vector<float> values = RandomPlain(desc, seed);
  for (float& value : values) value = Widen(Narrow(value));
  return values;
}

class Bf16ConvolutionTest : public testing::TestWithParam<Case> {
 protected:
  Bf16ConvolutionTest() {
    const Case& c = GetParam();
    problem_.window = c.window;
    problem_.groups = c.groups;
    problem_.bias = c.bias;
    problem_.src = c.src, problem_.dst = c.dst;
    problem_.src.type = c.f32_src ? BlobType::kF32 : BlobType::kBf16;
    problem_.dst.type = BlobType::kBf16;
    problem_.dst.block = OutputBlock(problem_);
    if (c.src.C % problem_.dst.block == 0) problem_.src.block = problem_.dst.block;
    weights_ = {c.dst.C, c.src.C / c.groups, c.window.KH, c.window.KW};
    src_ = RoundedPlain(c.src, 1);
    diff_dst_ = RoundedPlain(c.dst, 2);
    weight_ = RoundedPlain(weights_, 3);
    bias_ = RoundedPlain({1, c.dst.C}, 4);
  }

  // Calls fn(src, weight, dst element) for every product of the definition.
  template <typename Fn>
  void ForEachProduct(const Fn& fn) const {
    const Window& w = problem_.window;
    const BlobDesc &s = problem_.src, &d = problem_.dst;
    const int64_t per_group = s.C / problem_.groups;
    for (int64_t n = 0; n < d.N; ++n)
      for (int64_t k = 0; k < d.C; ++k)
        for (int64_t y = 0; y < d.H; ++y)
          for (int64_t x = 0; x < d.W; ++x)
            for (int64_t i = 0; i < per_group; ++i)
              for (int64_t tap = 0; tap < w.KH * w.KW; ++tap) {
                const int64_t sy = y * w.SH + tap / w.KW - w.PT, sx = x * w.SW + tap % w.KW - w.PL;
                if (sy < 0 || sy >= s.H || sx < 0 || sx >= s.W) continue;
                const int64_t c = k / (d.C / problem_.groups) * per_group + i;
                fn(((n * s.C + c) * s.H + sy) * s.W + sx, (k * per_group + i) * w.KH * w.KW + tap,
                   ((n * d.C + k) * d.H + y) * d.W + x);
              }
  }

  std::vector<double> Expected(Direction direction) const {
    const int64_t plane = problem_.dst.plane();
    std::vector<double> sums(direction == Direction::kForward        ? diff_dst_.size()
                             : direction == Direction::kBackwardData ? src_.size()
                                                                     : weight_.size());
    if (direction == Direction::kForward && problem_.bias) {
      for (size_t i = 0; i < sums.size(); ++i) {
        sums[i] = bias_[static_cast<int64_t>(i) / plane % problem_.dst.C];
      }
    }
    ForEachProduct([&](int64_t s, int64_t w, int64_t d) {
      if (direction == Direction::kForward) sums[d] += 1.0 * src_[s] * weight_[w];
      if (direction == Direction::kBackwardData) sums[s] += 1.0 * diff_dst_[d] * weight_[w];
      if (direction == Direction::kBackwardWeights) sums[w] += 1.0 * src_[s] * diff_dst_[d];
    });
    return sums;
  }

  std::vector<float> RunOne(ConvolutionAlgorithm* algorithm, Direction direction) const {
    AlignedBuffer src(problem_.src.bytes()), dst(problem_.dst.bytes());
    AlignedBuffer scratch(algorithm->scratch_bytes());
    std::vector<float> diff_weight(weight_.size(), NAN), diff_bias(bias_.size(), NAN);
    const bool forward = direction == Direction::kForward;
    ConvolutionTensors t{.scratch = scratch.data()};
    if (direction != Direction::kBackwardWeights) t.weight = weight_.data();
    if (direction != Direction::kBackwardData) {
      CopyToLayout(src_, problem_.src, src.floats().data());
      t.src = src.floats().data();
    } else {
      t.diff_src = src.floats().data();
    }
    if (forward) {
      t.dst = dst.floats().data();
      if (problem_.bias) t.bias = bias_.data();
    } else {
      CopyToLayout(diff_dst_, problem_.dst, dst.floats().data());
      t.diff_dst = dst.floats().data();
    }
    if (direction == Direction::kBackwardWeights) {
      t.diff_weight = diff_weight.data();
      if (problem_.bias) t.diff_bias = diff_bias.data();
    }
    algorithm->Run(t);
    if (forward) return CopyToPlain(problem_.dst, t.dst);
    if (direction == Direction::kBackwardData) return CopyToPlain(problem_.src, t.diff_src);
    return diff_weight;
  }

  ConvolutionProblem problem_;
  BlobDesc weights_;
  std::vector<float> src_, diff_dst_, weight_, bias_;
};

double RelativeErrorOf(const std::vector<float>& actual, const std::vector<double>& expected) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / norm);
}

TEST_P(Bf16ConvolutionTest, EveryCandidateIsTheDefinition) {
  for (const Direction direction :
       {Direction::kForward, Direction::kBackwardData, Direction::kBackwardWeights}) {
    const std::vector<double> expected = Expected(direction);
    const ConvolutionCandidates candidates = FindCandidates(problem_, direction);
    EXPECT_FALSE(candidates.empty());
    for (const auto& candidate : candidates) {
      EXPECT_LE(RelativeErrorOf(RunOne(candidate.get(), direction), expected),
                ToleranceOf(candidate->name(), direction))
          << candidate->name() << ", direction " << static_cast<int>(direction);
    }
  }
}

// So that the test above tests what it says: our own products wherever they apply.
TEST_P(Bf16ConvolutionTest, OwnProductsAreACandidateWhereTheMachineHasThem) {
  if (!RT_KERNEL(HasBf16Products)()) return;
  const Window& w = problem_.window;
  const bool winograd = GetParam().name.starts_with("winograd") && w.SH == 1;
  const bool pointwise = GetParam().name.starts_with("pointwise");
  const bool image = GetParam().name.starts_with("image");
  for (const Direction direction :
       {Direction::kForward, Direction::kBackwardData, Direction::kBackwardWeights}) {
    std::vector<std::string> names;
    for (const auto& candidate : FindCandidates(problem_, direction)) {
      names.push_back(candidate->name());
    }
    const bool data = direction == Direction::kBackwardData;
    EXPECT_EQ(std::ranges::count(names, "winograd 2x2 bf16"), winograd ? 1 : 0);
    EXPECT_EQ(std::ranges::count(names, "pointwise bf16"), pointwise ? 1 : 0);
    EXPECT_EQ(std::ranges::count(names, "image bf16"), image && !data ? 1 : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Bf16ConvolutionTest, testing::ValuesIn(AllCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ringtail
