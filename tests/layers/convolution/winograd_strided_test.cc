// Strided Winograd's three directions against the definition of convolution in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/parallel_for.h"
#include "layers/convolution/winograd/winograd_strided_data.h"
#include "layers/convolution/winograd/winograd_strided_weights.h"
#include "layers/kernels/winograd/winograd_multiply.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

constexpr double kTolerance = 5e-6;

struct Case {
  int64_t N, C, K, H, W, pad_top, pad_left, pad_bottom, pad_right;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.N << "x" << c.C << "x" << c.H << "x" << c.W << " to " << c.K
             << " channels, padding " << c.pad_top << " " << c.pad_left << " " << c.pad_bottom
             << " " << c.pad_right;
}

// Channels are multiples of 16, whatever the instruction set.
class WinogradStridedTest : public testing::TestWithParam<Case> {
 protected:
  WinogradStridedTest() {
    const Case& c = GetParam();
    const int64_t lanes = RT_KERNEL(WinogradLanes)();
    problem_.window = {.KH = 3,
                       .KW = 3,
                       .SH = 2,
                       .SW = 2,
                       .PT = c.pad_top,
                       .PL = c.pad_left,
                       .PB = c.pad_bottom,
                       .PR = c.pad_right};
    problem_.src = {c.N, c.C, c.H, c.W, lanes};
    problem_.dst = {c.N, c.K, (c.H + c.pad_top + c.pad_bottom - 3) / 2 + 1,
                    (c.W + c.pad_left + c.pad_right - 3) / 2 + 1, lanes};
    src_ = RandomPlain({1, problem_.src.elements()}, 1, -1, 2);
    diff_dst_ = RandomPlain({1, problem_.dst.elements()}, 2, -1, 1);
    weight_ = RandomPlain({1, c.K * c.C * 9}, 3, -1, 1);
    bias_ = RandomPlain({1, c.K}, 4, -1, 1);
  }

  static int64_t At(const BlobDesc& d, int64_t n, int64_t c, int64_t y, int64_t x) {
    return ((n * d.channel_blocks() + c / d.block) * d.plane() + y * d.W + x) * d.block +
           c % d.block;
  }

  // Calls fn(src offset, weight offset, dst offset) for every product in the definition.
  template <typename Fn>
  void ForEachProduct(const Fn& fn) const {
    const BlobDesc &s = problem_.src, &d = problem_.dst;
    const Window& w = problem_.window;
    for (int64_t n = 0; n < d.N; ++n)
      for (int64_t k = 0; k < d.C; ++k)
        for (int64_t c = 0; c < s.C; ++c)
          for (int64_t tap = 0; tap < 9; ++tap)
            for (int64_t y = 0; y < d.H; ++y) {
              const int64_t sy = 2 * y + tap / 3 - w.PT;
              if (sy < 0 || sy >= s.H) continue;
              const int64_t src_row = At(s, n, c, sy, 0), dst_row = At(d, n, k, y, 0);
              for (int64_t x = 0; x < d.W; ++x) {
                const int64_t sx = 2 * x + tap % 3 - w.PL;
                if (sx < 0 || sx >= s.W) continue;
                fn(src_row + sx * s.block, (k * s.C + c) * 9 + tap, dst_row + x * d.block);
              }
            }
  }

  static double RelativeError(const std::vector<float>& actual,
                              const std::vector<double>& expected) {
    double error = 0, norm = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
      norm += expected[i] * expected[i];
    }
    return std::sqrt(error / norm);
  }

  std::vector<float> RunData(WinogradStridedData::Direction direction, int threads) const {
    const bool forward = direction == WinogradStridedData::Direction::kForward;
    const int before = NumComputeThreads();
    SetNumComputeThreads(threads);
    const WinogradStridedData data(problem_, direction, threads);
    AlignedBuffer scratch(data.scratch_bytes());
    std::vector<float> out((forward ? problem_.dst : problem_.src).elements(), NAN);
    data.Run(forward ? src_.data() : diff_dst_.data(), weight_.data(),
             forward ? bias_.data() : nullptr, -INFINITY, INFINITY, out.data(), scratch.data());
    SetNumComputeThreads(before);
    return out;
  }

  // The gradient of the weights, followed by that of the bias.
  std::vector<float> RunWeights(int threads) const {
    const int before = NumComputeThreads();
    SetNumComputeThreads(threads);
    const WinogradStridedWeights weights(problem_, threads);
    AlignedBuffer scratch(weights.scratch_bytes());
    std::vector<float> out(weight_.size() + bias_.size(), NAN);
    weights.Run(src_.data(), diff_dst_.data(), out.data(), out.data() + weight_.size(),
                scratch.data());
    SetNumComputeThreads(before);
    return out;
  }

  WinogradStridedProblem problem_;
  std::vector<float> src_, diff_dst_, weight_, bias_;
};

TEST_P(WinogradStridedTest, Forward) {
  std::vector<double> expected(problem_.dst.elements());
  ForEachProduct([&](int64_t s, int64_t w, int64_t d) {
    expected[d] += static_cast<double>(src_[s]) * weight_[w];
  });
  const BlobDesc& d = problem_.dst;
  for (int64_t n = 0; n < d.N; ++n)
    for (int64_t k = 0; k < d.C; ++k)
      for (int64_t p = 0; p < d.plane(); ++p) expected[At(d, n, k, p / d.W, p % d.W)] += bias_[k];
  EXPECT_LT(RelativeError(RunData(WinogradStridedData::Direction::kForward, 1), expected),
            kTolerance);
}

TEST_P(WinogradStridedTest, BackwardData) {
  std::vector<double> expected(problem_.src.elements());
  ForEachProduct([&](int64_t s, int64_t w, int64_t d) {
    expected[s] += static_cast<double>(diff_dst_[d]) * weight_[w];
  });
  EXPECT_LT(RelativeError(RunData(WinogradStridedData::Direction::kBackwardData, 1), expected),
            kTolerance);
}

TEST_P(WinogradStridedTest, BackwardWeights) {
  std::vector<double> expected(weight_.size());
  ForEachProduct([&](int64_t s, int64_t w, int64_t d) {
    expected[w] += static_cast<double>(src_[s]) * diff_dst_[d];
  });
  const std::vector<float> actual = RunWeights(1);
  const auto bias = actual.begin() + static_cast<int64_t>(weight_.size());
  EXPECT_LT(RelativeError({actual.begin(), bias}, expected), kTolerance);
  std::vector<double> expected_bias(problem_.dst.C);
  const BlobDesc& d = problem_.dst;
  for (int64_t n = 0; n < d.N; ++n)
    for (int64_t k = 0; k < d.C; ++k)
      for (int64_t p = 0; p < d.plane(); ++p)
        expected_bias[k] += diff_dst_[At(d, n, k, p / d.W, p % d.W)];
  EXPECT_LT(RelativeError({bias, actual.end()}, expected_bias), kTolerance);
}

// Wherever direct convolution would show a NaN, Winograd does.
TEST_P(WinogradStridedTest, NanDoesNotHide) {
  const size_t poisoned = src_.size() / 2;
  src_[poisoned] = NAN;
  const std::vector<float> dst = RunData(WinogradStridedData::Direction::kForward, 2);
  const std::vector<float> gradient = RunWeights(2);
  ForEachProduct([&](int64_t s, int64_t w, int64_t d) {
    if (s != static_cast<int64_t>(poisoned)) return;
    EXPECT_TRUE(std::isnan(dst[d])) << d;
    EXPECT_TRUE(std::isnan(gradient[w])) << w;
  });
}

TEST_P(WinogradStridedTest, TheSameBitsWithAnyNumberOfThreads) {
  for (const auto direction :
       {WinogradStridedData::Direction::kForward, WinogradStridedData::Direction::kBackwardData}) {
    const std::vector<float> one = RunData(direction, 1);
    EXPECT_EQ(RunData(direction, 2), one);
    EXPECT_EQ(RunData(direction, 5), one);
  }
  const std::vector<float> one = RunWeights(1);
  EXPECT_EQ(RunWeights(2), one);
  EXPECT_EQ(RunWeights(5), one);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, WinogradStridedTest,
    testing::Values(Case{2, 16, 16, 8, 8, 1, 1, 1, 1}, Case{3, 32, 48, 7, 9, 1, 1, 1, 1},
                    Case{2, 16, 32, 16, 17, 0, 0, 1, 1}, Case{2, 16, 16, 9, 10, 0, 1, 0, 0},
                    Case{2, 16, 16, 10, 11, 1, 0, 0, 1}, Case{1, 16, 32, 5, 75, 0, 1, 1, 0},
                    Case{9, 64, 96, 14, 14, 1, 1, 1, 1}, Case{1, 16, 16, 1, 1, 1, 1, 1, 1},
                    Case{1, 16, 16, 2, 2, 1, 1, 0, 0},
                    // Many tiles: block by block, in every direction.
                    Case{1, 192, 400, 1, 2600, 1, 1, 1, 1}, Case{2, 256, 272, 4, 4, 1, 1, 1, 1}));

}  // namespace
}  // namespace ringtail
