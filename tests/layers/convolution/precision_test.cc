// How precise each algorithm is: the relative error against double precision (Euclidean norm) for
// rectified normal inputs, He weights and normal gradients. Prints the table of
// layers/convolution/README.md; and compares Winograd's points with those of textbooks.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/kernels/bfloat16.h"
#include "core/random.h"
#include "layers/convolution/candidates.h"
#include "layers/convolution/onednn_convolution.h"
#include "layers/convolution/winograd/winograd_convolution.h"
#include "layers/convolution/winograd/winograd_strided_convolution.h"
#include "layers/kernels/winograd/winograd_multiply.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Direction = ConvolutionDirection;
constexpr Direction kDirections[] = {Direction::kForward, Direction::kBackwardData,
                                     Direction::kBackwardWeights};
constexpr int64_t kBatch = 2;

Floats Normal(int64_t n, uint64_t seed, float scale = 1) {
  Rng rng(RngKey(seed).With(kTestStream));
  Floats values(n);
  for (float& v : values) v = scale * rng.Normal();
  return values;
}

template <typename Actual>
double RelativeError(const Actual& actual, const Doubles& expected) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(error / norm);
}

// A 3x3 convolution with padding 1, with inputs and results in plain order.
class Problem {
 public:
  Problem(int64_t C, int64_t K, int64_t size, int64_t stride, BlobType type = BlobType::kF32) {
    const int64_t lanes = RT_KERNEL(WinogradLanes)();
    p_.window = {.KH = 3, .KW = 3, .SH = stride, .SW = stride, .PT = 1, .PL = 1, .PB = 1, .PR = 1};
    p_.src = {kBatch, C, size, size, lanes};
    p_.dst = {kBatch, K, (size - 1) / stride + 1, (size - 1) / stride + 1, lanes};
    src_ = Normal(p_.src.elements(), 1);
    for (float& v : src_) v = std::max(v, 0.0F);
    weight_ = Normal(K * C * 9, 2, std::sqrt(2.0F / static_cast<float>(9 * C)));
    diff_dst_ = Normal(p_.dst.elements(), 3);
    p_.src.type = p_.dst.type = type;
    if (type == BlobType::kF32) return;
    for (Floats* rounded : {&src_, &weight_, &diff_dst_}) {
      for (float& v : *rounded) v = Widen(Narrow(v));
    }
  }
  const ConvolutionProblem& problem() const { return p_; }

  Doubles Expected(Direction direction) const {
    Doubles to(direction == Direction::kForward        ? p_.dst.elements()
               : direction == Direction::kBackwardData ? p_.src.elements()
                                                       : static_cast<int64_t>(weight_.size()));
    const BlobDesc &s = p_.src, &d = p_.dst;
    const int64_t stride = p_.window.SH;
    for (int64_t n = 0; n < d.N; ++n) {
      for (int64_t k = 0; k < d.C; ++k) {
        for (int64_t c = 0; c < s.C; ++c) {
          for (int64_t tap = 0; tap < 9; ++tap) {
            const int64_t at_weight = (k * s.C + c) * 9 + tap;
            for (int64_t y = 0; y < d.H; ++y) {
              const int64_t sy = y * stride + tap / 3 - 1;
              if (sy < 0 || sy >= s.H) continue;
              const int64_t at_src = ((n * s.C + c) * s.H + sy) * s.W + tap % 3 - 1;
              const int64_t at_dst = ((n * d.C + k) * d.H + y) * d.W;
              const int64_t first = tap % 3 == 0 ? 1 : 0;
              const int64_t last = tap % 3 == 2 && (d.W - 1) * stride + 1 >= s.W ? d.W - 1 : d.W;
              AddRow(direction, at_src, at_weight, at_dst, first, last, &to);
            }
          }
        }
      }
    }
    return to;
  }

  Floats Run(Direction direction, ConvolutionAlgorithm* algorithm) const {
    const GuardedBuffer src(p_.src.bytes()), dst(p_.dst.bytes());
    const GuardedBuffer scratch(algorithm->scratch_bytes());
    Floats weight = weight_;
    ConvolutionTensors t{.scratch = scratch.data()};
    if (direction != Direction::kBackwardData) CopyToLayout(src_, p_.src, src.floats());
    if (direction != Direction::kForward) CopyToLayout(diff_dst_, p_.dst, dst.floats());
    t.weight = weight.data();
    t.src = src.floats(), t.dst = dst.floats();
    t.diff_dst = dst.floats(), t.diff_src = src.floats(), t.diff_weight = weight.data();
    algorithm->Run(t);
    if (direction == Direction::kForward) return CopyToPlain(p_.dst, dst.floats());
    if (direction == Direction::kBackwardData) return CopyToPlain(p_.src, src.floats());
    return weight;
  }

 private:
  // Columns [first, last) of one row of dst, one tap.
  void AddRow(Direction direction, int64_t at_src, int64_t at_weight, int64_t at_dst, int64_t first,
              int64_t last, Doubles* to) const {
    const int64_t stride = p_.window.SH;
    const float* src = src_.data() + at_src;
    const float* diff = diff_dst_.data() + at_dst;
    const double weight = weight_[at_weight];
    double sum = 0;
    for (int64_t x = first; x < last; ++x) {
      if (direction == Direction::kForward) (*to)[at_dst + x] += weight * src[x * stride];
      if (direction == Direction::kBackwardData) (*to)[at_src + x * stride] += weight * diff[x];
      if (direction == Direction::kBackwardWeights) sum += double{diff[x]} * src[x * stride];
    }
    if (direction == Direction::kBackwardWeights) (*to)[at_weight] += sum;
  }

  ConvolutionProblem p_;
  Floats src_, weight_, diff_dst_;
};

// Prints "<what>: 1.5e-07 / 2.2e-07 / 5.6e-07" and expects less than `most`.
template <typename Create>
void Check(const std::string& what, const Problem& problem, std::span<const Doubles> expected,
           double most, const Create& create) {
  std::string line;
  for (size_t i = 0; i < std::size(kDirections); ++i) {
    const std::unique_ptr<ConvolutionAlgorithm> algorithm = create(kDirections[i]);
    ASSERT_NE(algorithm, nullptr) << what;
    const double error = RelativeError(problem.Run(kDirections[i], algorithm.get()), expected[i]);
    EXPECT_LT(error, most) << what;
    line += fmt::format("{}{:.1e}", i == 0 ? "" : " / ", error);
  }
  fmt::print("{:<40} {}\n", what, line);
}

constexpr double kDirect = 8e-7, kTwo = 1e-6, kFour = 3e-6, kStrided = 2e-6;

TEST(PrecisionTest, Stride1) {
  for (const auto& [channels, size] : {std::pair{64, 32}, {128, 16}, {256, 8}, {512, 4}}) {
    const Problem problem(channels, channels, size, 1);
    std::array<Doubles, 3> expected;
    for (size_t i = 0; i < 3; ++i) expected[i] = problem.Expected(kDirections[i]);
    const std::string row = fmt::format("{} @ {}: ", channels, size);
    Check(row + "oneDNN, direct", problem, expected, kDirect, [&](Direction direction) {
      return CreateOneDnnConvolution(problem.problem(), direction);
    });
    for (const int tile : {2, 4}) {
      Check(
          row + fmt::format("winograd {0}x{0}", tile), problem, expected, tile == 2 ? kTwo : kFour,
          [&](Direction direction) { return CreateWinograd(problem.problem(), direction, tile); });
    }
  }
}

TEST(PrecisionTest, Stride2) {
  for (const auto& [channels, size] : {std::pair{64, 32}, {128, 16}, {256, 8}}) {
    const Problem problem(channels, 2 * channels, size, 2);
    std::array<Doubles, 3> expected;
    for (size_t i = 0; i < 3; ++i) expected[i] = problem.Expected(kDirections[i]);
    const std::string row = fmt::format("{} to {} @ {}: ", channels, 2 * channels, size);
    Check(row + "oneDNN, direct", problem, expected, kDirect, [&](Direction direction) {
      return CreateOneDnnConvolution(problem.problem(), direction);
    });
    Check(row + "winograd stride 2", problem, expected, kStrided,
          [&](Direction direction) { return CreateWinogradStrided(problem.problem(), direction); });
  }
}

// Every candidate on bf16 blobs, from operands that bf16 holds: what is left is the rounding of dst and
// diff_src, 1.7e-3, and what an algorithm rounds on its way. Gradients of weights are f32.
TEST(PrecisionTest, Bf16) {
  constexpr double kRoundedOnce = 2.5e-3, kRoundedOperands = 6e-3, kF32Sums = 1e-5;
  for (const auto& [channels, size] : {std::pair{64, 32}, {128, 16}, {256, 8}, {512, 4}}) {
    const Problem problem(channels, channels, size, 1, BlobType::kBf16);
    for (const Direction direction : kDirections) {
      const Doubles expected = problem.Expected(direction);
      for (const auto& algorithm : FindCandidates(problem.problem(), direction)) {
        const double error = RelativeError(problem.Run(direction, algorithm.get()), expected);
        const bool weights = direction == Direction::kBackwardWeights;
        fmt::print("{} @ {}: {:<17} {:<28} {:.1e}\n", channels, size,
                   weights                            ? "backward-weights"
                   : direction == Direction::kForward ? "forward"
                                                      : "backward-data",
                   algorithm->name(), error);
        EXPECT_LT(error, algorithm->name() == "winograd 2x2 bf16" ? kRoundedOperands
                         : weights                                ? kF32Sums
                                                                  : kRoundedOnce);
      }
    }
  }
}

// F(4x4, 3x3) in single precision with any points, one of six being infinity. Toom and Cook's
// construction: A^T takes the powers of the points, G divides by the product of a point's distances
// to the others, B^T has the coefficients of the product of (x - p) over the other points.
class PointsOf {
 public:
  static constexpr int kPoints = 6, kTile = 4, kTaps = 3;

  explicit PointsOf(const std::array<double, kPoints - 1>& p) {
    for (int j = 0; j < kPoints - 1; ++j) {
      double distances = 1;
      Doubles others = {1};  // of the product, lowest power first
      for (int l = 0; l < kPoints - 1; ++l) {
        if (l == j) continue;
        distances *= p[j] - p[l];
        others = TimesXMinus(others, p[l]);
      }
      for (int i = 0; i < kTile; ++i) at_[i][j] = static_cast<float>(std::pow(p[j], i));
      for (int k = 0; k < kTaps; ++k) g_[j][k] = static_cast<float>(std::pow(p[j], k) / distances);
      for (int i = 0; i < kPoints - 1; ++i) bt_[j][i] = static_cast<float>(others[i]);
    }
    Doubles all = {1};
    for (const double point : p) all = TimesXMinus(all, point);
    at_[kTile - 1][kPoints - 1] = g_[kPoints - 1][kTaps - 1] = 1;
    for (int i = 0; i < kPoints; ++i) bt_[kPoints - 1][i] = static_cast<float>(all[i]);
  }

  // 4x4 outputs of `channels` planes of 6x6 values and filters of 3x3.
  Floats Convolve(const Floats& src, const Floats& weight, int64_t channels) const {
    Floats sum(kPoints * kPoints);
    for (int64_t c = 0; c < channels; ++c) {
      const Floats v = BothSides(bt_, src.data() + c * kPoints * kPoints, kPoints, kPoints);
      const Floats u = BothSides(g_, weight.data() + c * kTaps * kTaps, kPoints, kTaps);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += u[i] * v[i];
    }
    return BothSides(at_, sum.data(), kTile, kPoints);
  }

 private:
  using Matrix = std::array<std::array<float, kPoints>, kPoints>;

  static Doubles TimesXMinus(const Doubles& polynomial, double point) {
    Doubles product(polynomial.size() + 1);
    for (size_t i = 0; i < polynomial.size(); ++i) {
      product[i + 1] += polynomial[i];
      product[i] -= point * polynomial[i];
    }
    return product;
  }

  // M x M^T, where M is rows x n and x is n x n.
  static Floats BothSides(const Matrix& m, const float* x, int rows, int n) {
    Floats half(rows * n), both(rows * rows);
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < n; ++j) {
        for (int k = 0; k < n; ++k) half[i * n + j] += m[i][k] * x[k * n + j];
      }
    }
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < rows; ++j) {
        for (int k = 0; k < n; ++k) both[i * rows + j] += half[i * n + k] * m[j][k];
      }
    }
    return both;
  }

  Matrix at_{}, g_{}, bt_{};
};

// What layers/kernels/winograd/winograd_matrices.h says of its points.
TEST(PrecisionTest, OurPointsLoseHalfOfWhatTheTextbooksLose) {
  constexpr int64_t kChannels = 64, kSamples = 300;
  const PointsOf textbook({0, 1, -1, 2, -2}), ours({0, 5.0 / 8, -5.0 / 8, 1.5, -1.5});
  Floats by_textbook, by_ours;
  Doubles expected;
  for (uint64_t sample = 0; sample < kSamples; ++sample) {
    Floats src = Normal(kChannels * 36, 2 * sample);
    for (float& v : src) v = std::max(v, 0.0F);
    const Floats weight = Normal(kChannels * 9, 2 * sample + 1);
    for (const auto& [points, all] : {std::pair{&textbook, &by_textbook}, {&ours, &by_ours}}) {
      const Floats tile = points->Convolve(src, weight, kChannels);
      all->insert(all->end(), tile.begin(), tile.end());
    }
    for (int64_t at = 0; at < 16; ++at) {
      double sum = 0;
      for (int64_t c = 0; c < kChannels; ++c) {
        for (int64_t tap = 0; tap < 9; ++tap) {
          const int64_t pixel = (at / 4 + tap / 3) * 6 + at % 4 + tap % 3;
          sum += double{src[c * 36 + pixel]} * weight[c * 9 + tap];
        }
      }
      expected.push_back(sum);
    }
  }
  const double of_textbook = RelativeError(by_textbook, expected);
  const double of_ours = RelativeError(by_ours, expected);
  fmt::print("points 0, +-1, +-2: {:.1e}; 0, +-5/8, +-3/2: {:.1e}; ratio {:.2f}\n", of_textbook,
             of_ours, of_textbook / of_ours);
  EXPECT_LT(of_ours, kFour);
  EXPECT_GT(of_textbook, 1.8 * of_ours);
}

}  // namespace
}  // namespace ringtail
