// Winograd's three directions against the definition of convolution in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/parallel_for.h"
#include "layers/convolution/winograd/winograd_data.h"
#include "layers/convolution/winograd/winograd_weights.h"
#include "layers/kernels/winograd/winograd_multiply.h"
#include "tests/layers/convolution/defined_convolution.h"
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
  WinogradTest()
      : problem_(ProblemOf(GetParam())), truth_(problem_.src, problem_.dst, problem_.window) {}

  static WinogradProblem ProblemOf(const Case& c) {
    WinogradProblem problem;
    const int64_t lanes = RT_KERNEL(WinogradLanes)();
    problem.tile = c.tile;
    problem.window = {
        .KH = 3, .KW = 3, .PT = c.pad_top, .PL = c.pad_left, .PB = c.pad_bottom, .PR = c.pad_right};
    problem.src = {c.N, c.C, c.H, c.W, lanes};
    problem.dst = {c.N, c.K, c.H + c.pad_top + c.pad_bottom - 2, c.W + c.pad_left + c.pad_right - 2,
                   lanes};
    return problem;
  }

  std::vector<float> RunData(ConvolutionDirection direction, int threads,
                             const ChannelAffine& affine = {}) const {
    const bool forward = direction == ConvolutionDirection::kForward;
    const int before = NumComputeThreads();
    SetNumComputeThreads(threads);
    const WinogradData<float> data(problem_, direction, threads);
    AlignedBuffer scratch(data.scratch_bytes());
    std::vector<float> out((forward ? problem_.dst : problem_.src).elements(), NAN);
    data.Run(forward ? truth_.src.data() : truth_.diff_dst.data(), affine, truth_.weight.data(),
             forward ? truth_.bias.data() : nullptr, -INFINITY, INFINITY, out.data(),
             scratch.data());
    SetNumComputeThreads(before);
    return out;
  }

  // The gradient of the weights, followed by that of the bias.
  std::vector<float> RunWeights(int threads, const ChannelAffine& affine = {}) const {
    const int before = NumComputeThreads();
    SetNumComputeThreads(threads);
    const WinogradWeights<float> weights(problem_, threads);
    AlignedBuffer scratch(weights.scratch_bytes());
    std::vector<float> out(truth_.weight.size() + truth_.bias.size(), NAN);
    weights.Run(truth_.src.data(), affine, truth_.diff_dst.data(), out.data(),
                out.data() + truth_.weight.size(), scratch.data());
    SetNumComputeThreads(before);
    return out;
  }

  double Tolerance() const { return GetParam().tile == 4 ? 1e-5 : 1e-6; }

  WinogradProblem problem_;
  DefinedConvolution truth_;
};

TEST_P(WinogradTest, MapsSrcToTheSameBits) {
  const TestAffine map(problem_.src);
  const std::vector<float> forward = RunData(ConvolutionDirection::kForward, 1, map.affine());
  const std::vector<float> weights = RunWeights(1, map.affine());
  map.Apply(problem_.src, truth_.src.data());
  EXPECT_EQ(RunData(ConvolutionDirection::kForward, 1), forward);
  EXPECT_EQ(RunWeights(1), weights);
}

TEST_P(WinogradTest, Forward) {
  EXPECT_LT(RelativeError(RunData(ConvolutionDirection::kForward, 1), truth_.Forward()),
            Tolerance());
}

TEST_P(WinogradTest, BackwardData) {
  EXPECT_LT(RelativeError(RunData(ConvolutionDirection::kBackwardData, 1), truth_.BackwardData()),
            Tolerance());
}

TEST_P(WinogradTest, BackwardWeights) {
  const std::vector<float> actual = RunWeights(1);
  const auto weights = std::span(actual).first(truth_.weight.size());
  EXPECT_LT(RelativeError(weights, truth_.BackwardWeights()), Tolerance());
  const auto bias = std::span(actual).subspan(weights.size());
  EXPECT_LT(RelativeError(bias, truth_.BackwardBias()), Tolerance());
}

// Wherever direct convolution would show a NaN, Winograd does.
TEST_P(WinogradTest, NanDoesNotHide) {
  const size_t poisoned = truth_.src.size() / 2;
  truth_.src[poisoned] = NAN;
  const std::vector<float> dst = RunData(ConvolutionDirection::kForward, 2);
  const std::vector<float> gradient = RunWeights(2);
  truth_.ForEachProduct([&](int64_t s, int64_t w, int64_t d) {
    if (s != static_cast<int64_t>(poisoned)) return;
    EXPECT_TRUE(std::isnan(dst[d])) << d;
    EXPECT_TRUE(std::isnan(gradient[w])) << w;
  });
}

TEST_P(WinogradTest, TheSameBitsWithAnyNumberOfThreads) {
  for (const auto direction :
       {ConvolutionDirection::kForward, ConvolutionDirection::kBackwardData}) {
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
