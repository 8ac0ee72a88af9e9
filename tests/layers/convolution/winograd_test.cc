// Winograd's three directions against the definition of convolution in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/parallel_for.h"
#include "layers/convolution/winograd/winograd_data.h"
#include "layers/convolution/winograd/winograd_weights.h"
#include "layers/kernels/winograd/winograd_multiply.h"
#include "tests/layers/layer_runner.h"
#include "tests/layers/test_affine.h"

namespace ringtail {
namespace {

struct Case {
  int tile;
  int64_t N, C, K, H, W, pad_top, pad_left, pad_bottom, pad_right;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << "F(" << c.tile << ") " << c.N << "x" << c.C << "x" << c.H << "x" << c.W << " to "
             << c.K << " channels, padding " << c.pad_top << " " << c.pad_left << " "
             << c.pad_bottom << " " << c.pad_right;
}

// Channels are multiples of 16, whatever the instruction set.
class WinogradTest : public testing::TestWithParam<Case> {
 protected:
  WinogradTest() {
    const Case& c = GetParam();
    const int64_t lanes = RT_KERNEL(WinogradLanes)();
    problem_.tile = c.tile;
    problem_.window = {
        .KH = 3, .KW = 3, .PT = c.pad_top, .PL = c.pad_left, .PB = c.pad_bottom, .PR = c.pad_right};
    problem_.src = {c.N, c.C, c.H, c.W, lanes};
    problem_.dst = {c.N, c.K, c.H + c.pad_top + c.pad_bottom - 2,
                    c.W + c.pad_left + c.pad_right - 2, lanes};
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
              const int64_t sy = y + tap / 3 - w.PT;
              if (sy < 0 || sy >= s.H) continue;
              const int64_t src_row = At(s, n, c, sy, 0), dst_row = At(d, n, k, y, 0);
              for (int64_t x = 0; x < d.W; ++x) {
                const int64_t sx = x + tap % 3 - w.PL;
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

  std::vector<float> RunData(WinogradData::Direction direction, int threads,
                             const ChannelAffine& affine = {}) const {
    const bool forward = direction == WinogradData::Direction::kForward;
    const int before = NumComputeThreads();
    SetNumComputeThreads(threads);
    const WinogradData data(problem_, direction, threads);
    AlignedBuffer scratch(data.scratch_bytes());
    std::vector<float> out((forward ? problem_.dst : problem_.src).elements(), NAN);
    data.Run(forward ? src_.data() : diff_dst_.data(), affine, weight_.data(),
             forward ? bias_.data() : nullptr, -INFINITY, INFINITY, out.data(), scratch.data());
    SetNumComputeThreads(before);
    return out;
  }

  // The gradient of the weights, followed by that of the bias.
  std::vector<float> RunWeights(int threads, const ChannelAffine& affine = {}) const {
    const int before = NumComputeThreads();
    SetNumComputeThreads(threads);
    const WinogradWeights weights(problem_, threads);
    AlignedBuffer scratch(weights.scratch_bytes());
    std::vector<float> out(weight_.size() + bias_.size(), NAN);
    weights.Run(src_.data(), affine, diff_dst_.data(), out.data(), out.data() + weight_.size(),
                scratch.data());
    SetNumComputeThreads(before);
    return out;
  }

  double Tolerance() const { return GetParam().tile == 4 ? 1e-5 : 1e-6; }

  WinogradProblem problem_;
  std::vector<float> src_, diff_dst_, weight_, bias_;
};

TEST_P(WinogradTest, MapsSrcToTheSameBits) {
  const TestAffine map(problem_.src);
  const std::vector<float> forward = RunData(WinogradData::Direction::kForward, 1, map.affine());
  const std::vector<float> weights = RunWeights(1, map.affine());
  map.Apply(problem_.src, src_.data());
  EXPECT_EQ(RunData(WinogradData::Direction::kForward, 1), forward);
  EXPECT_EQ(RunWeights(1), weights);
}

TEST_P(WinogradTest, Forward) {
  std::vector<double> expected(problem_.dst.elements());
  ForEachProduct([&](int64_t s, int64_t w, int64_t d) {
    expected[d] += static_cast<double>(src_[s]) * weight_[w];
  });
  const BlobDesc& d = problem_.dst;
  for (int64_t n = 0; n < d.N; ++n)
    for (int64_t k = 0; k < d.C; ++k)
      for (int64_t p = 0; p < d.plane(); ++p) expected[At(d, n, k, p / d.W, p % d.W)] += bias_[k];
  EXPECT_LT(RelativeError(RunData(WinogradData::Direction::kForward, 1), expected), Tolerance());
}

TEST_P(WinogradTest, BackwardData) {
  std::vector<double> expected(problem_.src.elements());
  ForEachProduct([&](int64_t s, int64_t w, int64_t d) {
    expected[s] += static_cast<double>(diff_dst_[d]) * weight_[w];
  });
  EXPECT_LT(RelativeError(RunData(WinogradData::Direction::kBackwardData, 1), expected),
            Tolerance());
}

TEST_P(WinogradTest, BackwardWeights) {
  std::vector<double> expected(weight_.size());
  ForEachProduct([&](int64_t s, int64_t w, int64_t d) {
    expected[w] += static_cast<double>(src_[s]) * diff_dst_[d];
  });
  const std::vector<float> actual = RunWeights(1);
  const auto bias = actual.begin() + static_cast<int64_t>(weight_.size());
  EXPECT_LT(RelativeError({actual.begin(), bias}, expected), Tolerance());
  std::vector<double> expected_bias(problem_.dst.C);
  const BlobDesc& d = problem_.dst;
  for (int64_t n = 0; n < d.N; ++n)
    for (int64_t k = 0; k < d.C; ++k)
      for (int64_t p = 0; p < d.plane(); ++p)
        expected_bias[k] += diff_dst_[At(d, n, k, p / d.W, p % d.W)];
  EXPECT_LT(RelativeError({bias, actual.end()}, expected_bias), Tolerance());
}

// Wherever direct convolution would show a NaN, Winograd does.
TEST_P(WinogradTest, NanDoesNotHide) {
  const size_t poisoned = src_.size() / 2;
  src_[poisoned] = NAN;
  const std::vector<float> dst = RunData(WinogradData::Direction::kForward, 2);
  const std::vector<float> gradient = RunWeights(2);
  ForEachProduct([&](int64_t s, int64_t w, int64_t d) {
    if (s != static_cast<int64_t>(poisoned)) return;
    EXPECT_TRUE(std::isnan(dst[d])) << d;
    EXPECT_TRUE(std::isnan(gradient[w])) << w;
  });
}

TEST_P(WinogradTest, TheSameBitsWithAnyNumberOfThreads) {
  for (const auto direction :
       {WinogradData::Direction::kForward, WinogradData::Direction::kBackwardData}) {
    const std::vector<float> one = RunData(direction, 1);
    EXPECT_EQ(RunData(direction, 2), one);
    EXPECT_EQ(RunData(direction, 5), one);
  }
  const std::vector<float> one = RunWeights(1);
  EXPECT_EQ(RunWeights(2), one);
  EXPECT_EQ(RunWeights(5), one);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, WinogradTest,
    testing::Values(Case{4, 2, 16, 16, 8, 8, 1, 1, 1, 1}, Case{2, 2, 16, 16, 8, 8, 1, 1, 1, 1},
                    Case{4, 3, 32, 48, 7, 9, 1, 1, 1, 1}, Case{2, 3, 32, 48, 7, 9, 1, 1, 1, 1},
                    Case{4, 1, 16, 32, 5, 45, 0, 2, 1, 0}, Case{2, 1, 16, 32, 5, 45, 0, 2, 1, 0},
                    Case{4, 9, 64, 96, 14, 14, 1, 1, 1, 1}, Case{4, 1, 16, 16, 1, 1, 1, 1, 1, 1},
                    // Large filters: panel by panel, part by part.
                    Case{4, 2, 192, 208, 6, 6, 1, 1, 1, 1}, Case{2, 2, 256, 272, 4, 4, 1, 1, 1, 1},
                    Case{4, 1, 192, 208, 1, 1600, 1, 1, 1, 1},
                    Case{4, 1, 192, 208, 1, 400, 1, 1, 1, 1},
                    Case{4, 1, 352, 352, 1, 1000, 1, 1, 1, 1}));

}  // namespace
}  // namespace ringtail
