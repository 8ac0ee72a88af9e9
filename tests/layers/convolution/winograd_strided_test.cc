// Strided Winograd's three directions against the definition of convolution in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/parallel_for.h"
#include "layers/convolution/winograd/winograd_strided_data.h"
#include "layers/convolution/winograd/winograd_strided_weights.h"
#include "layers/kernels/winograd/winograd_multiply.h"
#include "tests/layers/convolution/defined_convolution.h"

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
  WinogradStridedTest()
      : problem_(ProblemOf(GetParam())), truth_(problem_.src, problem_.dst, problem_.window) {}

  static WinogradStridedProblem ProblemOf(const Case& c) {
    WinogradStridedProblem problem;
    const int64_t lanes = RT_KERNEL(WinogradLanes)();
    problem.window = {.KH = 3,
                      .KW = 3,
                      .SH = 2,
                      .SW = 2,
                      .PT = c.pad_top,
                      .PL = c.pad_left,
                      .PB = c.pad_bottom,
                      .PR = c.pad_right};
    problem.src = {c.N, c.C, c.H, c.W, lanes};
    problem.dst = {c.N, c.K, (c.H + c.pad_top + c.pad_bottom - 3) / 2 + 1,
                   (c.W + c.pad_left + c.pad_right - 3) / 2 + 1, lanes};
    return problem;
  }

  std::vector<float> RunData(WinogradStridedData::Direction direction, int threads) const {
    const bool forward = direction == WinogradStridedData::Direction::kForward;
    const int before = NumComputeThreads();
    SetNumComputeThreads(threads);
    const WinogradStridedData data(problem_, direction, threads);
    AlignedBuffer scratch(data.scratch_bytes());
    std::vector<float> out((forward ? problem_.dst : problem_.src).elements(), NAN);
    data.Run(forward ? truth_.src.data() : truth_.diff_dst.data(), truth_.weight.data(),
             forward ? truth_.bias.data() : nullptr, -INFINITY, INFINITY, out.data(),
             scratch.data());
    SetNumComputeThreads(before);
    return out;
  }

  // The gradient of the weights, followed by that of the bias.
  std::vector<float> RunWeights(int threads) const {
    const int before = NumComputeThreads();
    SetNumComputeThreads(threads);
    const WinogradStridedWeights weights(problem_, threads);
    AlignedBuffer scratch(weights.scratch_bytes());
    std::vector<float> out(truth_.weight.size() + truth_.bias.size(), NAN);
    weights.Run(truth_.src.data(), truth_.diff_dst.data(), out.data(),
                out.data() + truth_.weight.size(), scratch.data());
    SetNumComputeThreads(before);
    return out;
  }

  WinogradStridedProblem problem_;
  DefinedConvolution truth_;
};

TEST_P(WinogradStridedTest, Forward) {
  EXPECT_LT(RelativeError(RunData(WinogradStridedData::Direction::kForward, 1), truth_.Forward()),
            kTolerance);
}

TEST_P(WinogradStridedTest, BackwardData) {
  EXPECT_LT(RelativeError(RunData(WinogradStridedData::Direction::kBackwardData, 1),
                          truth_.BackwardData()),
            kTolerance);
}

TEST_P(WinogradStridedTest, BackwardWeights) {
  const std::vector<float> actual = RunWeights(1);
  const auto weights = std::span(actual).first(truth_.weight.size());
  EXPECT_LT(RelativeError(weights, truth_.BackwardWeights()), kTolerance);
  const auto bias = std::span(actual).subspan(weights.size());
  EXPECT_LT(RelativeError(bias, truth_.BackwardBias()), kTolerance);
}

// Wherever direct convolution would show a NaN, Winograd does.
TEST_P(WinogradStridedTest, NanDoesNotHide) {
  const size_t poisoned = truth_.src.size() / 2;
  truth_.src[poisoned] = NAN;
  const std::vector<float> dst = RunData(WinogradStridedData::Direction::kForward, 2);
  const std::vector<float> gradient = RunWeights(2);
  truth_.ForEachProduct([&](int64_t s, int64_t w, int64_t d) {
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
