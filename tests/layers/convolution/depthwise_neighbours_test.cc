// The work that depthwise convolution does for the layers next to it, against the same done before
// or after, bit for bit: maps of src and diff_dst on the way in, moments of dst and sums of
// diff_src on the way out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "layers/convolution/depthwise_convolution.h"
#include "layers/kernels/depthwise.h"
#include "tests/layers/convolution/depthwise_call.h"
#include "tests/layers/layer_runner.h"
#include "tests/layers/test_affine.h"
#include "tests/layers/test_sums.h"

namespace ringtail {
namespace {

using Direction = ConvolutionDirection;
using Options = DepthwiseOptions;
using Result = DepthwiseResult;
using Mapped = DepthwiseMapped;
using Doubles = std::vector<double>;

constexpr Direction kDirections[] = {Direction::kForward, Direction::kBackwardData,
                                     Direction::kBackwardWeights, Direction::kBackward};

class DepthwiseNeighboursTest : public testing::TestWithParam<DepthwiseCase> {};

TEST_P(DepthwiseNeighboursTest, MapsInputsToTheSameBits) {
  const ConvolutionProblem p = DepthwiseProblem(GetParam());
  const DepthwiseTensors data(p);
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
        const Result before = RunDepthwise(p, data, direction, options(1, Mapped::kBefore));
        EXPECT_EQ(RunDepthwise(p, data, direction, options(1, Mapped::kOnTheWay)), before);
        EXPECT_EQ(RunDepthwise(p, data, direction, options(2, Mapped::kOnTheWay)), before);
      }
    }
  }
}

TEST_P(DepthwiseNeighboursTest, TakesTheMomentsOfDst) {
  for (const Activation activation : {Activation::kNone, Activation::kRelu}) {
    const ConvolutionProblem p = DepthwiseProblem(GetParam(), true, activation);
    const DepthwiseTensors data(p);
    const Result actual = RunDepthwise(p, data, Direction::kForward, {.moments = true});
    EXPECT_EQ(actual.blob, RunDepthwise(p, data, Direction::kForward).blob);
    EXPECT_EQ(actual, RunDepthwise(p, data, Direction::kForward, {.threads = 2, .moments = true}));
    GuardedBuffer dst(p.dst.bytes());
    CopyToLayout(actual.blob, p.dst, dst.floats());
    Doubles mean(actual.mean.size()), m2(mean);  // (sample, channel), as one part is a plane
    for (size_t c = 0; c < mean.size(); c += p.dst.block) {
      RT_KERNEL(BatchNormMoments<float>, dst.floats() + c * p.dst.plane(), p.dst.plane(),
                p.dst.block, &mean[c], &m2[c]);
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
    RT_KERNEL(BatchNormGradientSums<float>, src.floats() + c * d.plane(),
              diff.floats() + c * d.plane(), d.plane(), d.block, affine.affine().From(channel),
              &g[c], &gx[c]);
  }
  EXPECT_EQ(result.g, g);
  EXPECT_EQ(result.gx, gx);
}

TEST_P(DepthwiseNeighboursTest, TakesTheSumsOfDiffSrc) {
  const ConvolutionProblem p = DepthwiseProblem(GetParam());
  const DepthwiseTensors data(p);
  for (const Mapped diff_dst : {Mapped::kNot, Mapped::kOnTheWay}) {
    Options options = {.src = Mapped::kOnTheWay, .diff_dst = diff_dst};
    const Result without = RunDepthwise(p, data, Direction::kBackward, options);
    options.sums = true;
    const Result with = RunDepthwise(p, data, Direction::kBackward, options);
    EXPECT_EQ(with.blob, without.blob);
    EXPECT_EQ(with.diff_weight, without.diff_weight);
    const TestAffine affine(p.src);
    ExpectedGradientSums(p.src, data.src, with.blob, affine.affine(), {p.src.plane()})
        .ExpectNear(with.g, with.gx);
    ExpectBatchNormsSums(p.src, data.src, with);
    options.threads = 2;
    EXPECT_EQ(RunDepthwise(p, data, Direction::kBackward, options), with);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, DepthwiseNeighboursTest, testing::ValuesIn(DepthwiseCases()));

// Blobs of 16 MB and more are written past the caches. The same samples fill less one by one.
TEST(DepthwiseNeighboursBlobsTest, LargeBlobsAreTheSameBits) {
  for (const int64_t stride : {1, 2}) {
    const ConvolutionProblem p = DepthwiseProblem({3, stride, 2, 32, 257, 259, 1, 1, 1, 1});
    const ConvolutionProblem one = DepthwiseProblem({3, stride, 1, 32, 257, 259, 1, 1, 1, 1});
    ASSERT_GE(p.src.bytes(), 16 << 20);
    const DepthwiseTensors data(p), first(one);  // random values do not depend on their number
    const auto expect_first = [](const auto& all, const auto& part) {
      EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin()));
    };
    for (const bool moments : {false, true}) {
      const Options options = {.threads = 2, .moments = moments};
      const Result all = RunDepthwise(p, data, Direction::kForward, options);
      const Result part = RunDepthwise(one, first, Direction::kForward, options);
      expect_first(all.blob, part.blob);
      expect_first(all.mean, part.mean);
      expect_first(all.m2, part.m2);
    }
    const Options options = {.src = Mapped::kOnTheWay, .sums = true};
    const Result all = RunDepthwise(p, data, Direction::kBackward, options);
    const Result part = RunDepthwise(one, first, Direction::kBackward, options);
    expect_first(all.blob, part.blob);
    expect_first(all.g, part.g);
    expect_first(all.gx, part.gx);
  }
}

TEST(DepthwiseNeighboursBlobsTest, ANanPassesBackward) {
  const ConvolutionProblem p = DepthwiseProblem({3, 2, 2, 16, 20, 20, 1, 1, 1, 1});
  DepthwiseTensors data(p);
  data.diff_dst[3 * p.dst.plane() + 5 * 10 + 5] = NAN;  // channel 3, row 5, column 5
  const Result gradients =
      RunDepthwise(p, data, Direction::kBackward, {.src = Mapped::kOnTheWay, .sums = true});
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

}  // namespace
}  // namespace ringtail
