// The work that 1x1 convolutions do for the batch norms next to them: the map of src on the way in,
// the moments of dst on the way out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "layers/convolution/pointwise/pointwise_convolution.h"
#include "tests/layers/convolution/pointwise_call.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

using Direction = ConvolutionDirection;
using Options = PointwiseOptions;
using Result = PointwiseResult;

class PointwiseNeighboursTest : public testing::TestWithParam<PointwiseShape> {
 protected:
  PointwiseNeighboursTest() : p_(PointwiseProblem(GetParam())), data_(p_) {}
  Result Run(Direction direction, const Options& options) const {
    return RunPointwise(p_, data_, direction, options);
  }
  const ConvolutionProblem p_;
  PointwiseTensors data_;
};

constexpr struct {
  float low, high;
} kBounds[] = {{0, 1.5F}, {0, kUnbounded}, {-kUnbounded, kUnbounded}};

TEST_P(PointwiseNeighboursTest, ForwardMapsSrcToTheSameBits) {
  for (const auto& bounds : kBounds) {
    const float low = bounds.low, high = bounds.high;
    const auto run = [&](Mapped src, int threads) {
      return Run(Direction::kForward, {.threads = threads, .src = src, .low = low, .high = high});
    };
    const Result before = run(Mapped::kBeforeUnaware, 1);
    EXPECT_EQ(run(Mapped::kBefore, 1), before);
    EXPECT_EQ(run(Mapped::kOnTheWay, 1), before);
    EXPECT_EQ(run(Mapped::kOnTheWay, 2), before);
    EXPECT_EQ(run(Mapped::kOnTheWay, 3), before);
    const Options options = {.src = Mapped::kOnTheWay, .low = low, .high = high};
    EXPECT_LT(RelativeError(before.dst, DefinedForward(p_, MappedData(p_, data_, options))), 1e-6);
  }
}

TEST_P(PointwiseNeighboursTest, BackwardWeightsMapSrcToTheSameBits) {
  for (const auto& bounds : kBounds) {
    const float low = bounds.low, high = bounds.high;
    const auto run = [&](Mapped src, int threads) {
      return Run(Direction::kBackwardWeights,
                 {.threads = threads, .src = src, .low = low, .high = high});
    };
    const Result before = run(Mapped::kBefore, 1);
    EXPECT_EQ(run(Mapped::kOnTheWay, 1), before);
    EXPECT_EQ(run(Mapped::kOnTheWay, 2), before);
    EXPECT_EQ(run(Mapped::kOnTheWay, 3), before);
    const Options options = {.src = Mapped::kOnTheWay, .low = low, .high = high};
    const PointwiseTensors mapped = MappedData(p_, data_, options);
    EXPECT_LT(RelativeError(before.diff_weight, DefinedDiffWeight(p_, mapped)), 1e-6);
  }
}

TEST_P(PointwiseNeighboursTest, BackwardDataTakesTheSumsOfDiffSrc) {
  if (p_.window.SH > 1) return;  // then it does not
  for (const auto& [low, high] : kBounds) {
    Options options = {.src = Mapped::kOnTheWay, .low = low, .high = high, .sums = true};
    const Result with = Run(Direction::kBackwardData, options);
    ExpectSumsOf(p_, data_, options, with);
    for (const int threads : {2, 3}) {
      options.threads = threads;
      EXPECT_EQ(Run(Direction::kBackwardData, options), with) << threads;
    }
    EXPECT_EQ(with.diff_src, Run(Direction::kBackwardData, {}).diff_src);
  }
}

TEST_P(PointwiseNeighboursTest, TakesTheMomentsOfDst) {
  for (const Mapped src : {Mapped::kNot, Mapped::kOnTheWay}) {
    const Result without = Run(Direction::kForward, {.src = src});
    Result with = Run(Direction::kForward, {.src = src, .moments = true});
    ExpectMomentsOf(p_, with);
    EXPECT_EQ(Run(Direction::kForward, {.threads = 2, .src = src, .moments = true}), with);
    EXPECT_EQ(Run(Direction::kForward, {.threads = 3, .src = src, .moments = true}), with);
    EXPECT_EQ(with.dst, without.dst);
  }
}

TEST_P(PointwiseNeighboursTest, TakesMomentsFarFromZero) {
  ConvolutionProblem p = p_;
  p.bias = true;
  p.activation = Activation::kNone;
  for (float& b : data_.bias) b += 1000;
  for (float& w : data_.weight) w /= std::sqrt(static_cast<float>(p.src.C));  // deviations near 1
  ExpectMomentsOf(p, RunPointwise(p, data_, Direction::kForward, {.moments = true}));
}

// The value that deviations are taken from may be far from all others.
TEST_P(PointwiseNeighboursTest, TakesMomentsWhereTheFirstPixelIsFarOff) {
  for (int64_t plane = 0; plane < p_.src.N * p_.src.C; ++plane) {
    data_.src[plane * p_.src.plane()] = 100;
  }
  ExpectMomentsOf(p_, Run(Direction::kForward, {.moments = true}));
}

TEST_P(PointwiseNeighboursTest, NanReachesTheMoments) {
  const BlobDesc &s = p_.src, &d = p_.dst;
  const BlobMoments shape = {
      {.part_pixels = Run(Direction::kForward, {.moments = true}).part_pixels}};
  // The last pixel of the last channel that is read in sample 0.
  const int64_t y = (d.H - 1) * p_.window.SH, x = (d.W - 1) * p_.window.SW;
  data_.src[((s.C - 1) * s.H + y) * s.W + x] = NAN;
  const Result result = Run(Direction::kForward, {.moments = true});
  const int64_t last_part = shape.parts(d) - 1;
  for (int64_t c = 0; c < d.C; ++c) {
    const int64_t at = shape.At(d, 0, last_part, c / d.block) + c % d.block;
    ASSERT_TRUE(std::isnan(result.mean[at])) << c;
    ASSERT_TRUE(std::isnan(result.m2[at])) << c;
    if (last_part == 0) continue;
    ASSERT_FALSE(std::isnan(result.mean[shape.At(d, 0, 0, c / d.block) + c % d.block])) << c;
  }
}

constexpr auto kRelu = Activation::kRelu, kRelu6 = Activation::kRelu6;

INSTANTIATE_TEST_SUITE_P(
    Shapes, PointwiseNeighboursTest,
    testing::Values(
        // Panels of one, one and a half, and two blocks, of 8 and of 16.
        PointwiseShape{2, 16, 8, 7, 7}, PointwiseShape{2, 16, 12, 7, 7, 1, true},
        PointwiseShape{5, 32, 16, 7, 7}, PointwiseShape{3, 24, 24, 14, 14},
        PointwiseShape{2, 40, 32, 13, 11, 1, true, kRelu}, PointwiseShape{1, 48, 40, 14, 14},
        PointwiseShape{1, 40, 48, 13, 11}, PointwiseShape{1, 96, 56, 14, 14, 1, true, kRelu6},
        PointwiseShape{3, 96, 96, 14, 14}, PointwiseShape{1, 24, 144, 28, 28},
        PointwiseShape{1, 144, 24, 28, 28, 1, true},
        // Planes that are cut, unequally, and runs over several samples, the last not full.
        PointwiseShape{1, 16, 24, 56, 56}, PointwiseShape{1, 96, 24, 56, 56},
        PointwiseShape{1, 24, 40, 37, 41}, PointwiseShape{11, 16, 24, 3, 3},
        PointwiseShape{9, 96, 40, 7, 7, 1, true, kRelu6}, PointwiseShape{40, 16, 24, 2, 3},
        // Channels that do not fill a block; one pixel.
        PointwiseShape{2, 3, 5, 13, 11, 1, true, kRelu}, PointwiseShape{2, 17, 33, 5, 5},
        PointwiseShape{4, 24, 40, 1, 1},
        // Several passes, the last the smallest.
        PointwiseShape{3, 700, 40, 3, 5, 1, true, kRelu}, PointwiseShape{2, 1300, 24, 7, 7},
        PointwiseShape{1, 648, 56, 13, 11, 1, true}));

// A larger stride gathers its pixels first, and maps them after that.
INSTANTIATE_TEST_SUITE_P(Strides, PointwiseNeighboursTest,
                         testing::Values(PointwiseShape{2, 24, 40, 9, 7, 2, true, kRelu},
                                         PointwiseShape{3, 32, 48, 14, 14, 2},
                                         PointwiseShape{1, 16, 24, 56, 56, 2},
                                         PointwiseShape{2, 20, 16, 10, 11, 3}));

// A dst of 16 MiB that begins on a cache line is written past the caches. The same samples one by
// one, or a float further on, are not.
TEST(PointwiseStreamingTest, IsTheSameBits) {
  for (const auto& [K, activation] : {std::pair{48, Activation::kNone}, std::pair{40, kRelu6}}) {
    const bool bias = activation != Activation::kNone;
    const ConvolutionProblem p = PointwiseProblem({2, 24, K, 231, 229, 1, bias, activation});
    ConvolutionProblem one = p;
    one.src.N = one.dst.N = 1;
    ASSERT_GE(p.dst.bytes(), 16 << 20);
    ASSERT_LT(one.dst.bytes(), 16 << 20);
    const PointwiseTensors data(p), first(one);  // random values do not depend on their number
    for (const Mapped src : {Mapped::kNot, Mapped::kOnTheWay}) {
      Options options = {.threads = 2, .src = src, .moments = true};
      const Result all = RunPointwise(p, data, Direction::kForward, options);
      ExpectMomentsOf(p, all);
      const Result part = RunPointwise(one, first, Direction::kForward, options);
      EXPECT_TRUE(std::equal(part.dst.begin(), part.dst.end(), all.dst.begin()));
      EXPECT_TRUE(std::equal(part.mean.begin(), part.mean.end(), all.mean.begin()));
      EXPECT_TRUE(std::equal(part.m2.begin(), part.m2.end(), all.m2.begin()));
      options.unaligned = true;
      EXPECT_EQ(RunPointwise(p, data, Direction::kForward, options), all);
    }
  }
}

TEST(PointwiseStreamingTest, OfSeveralPassesIsTheSameBits) {
  const ConvolutionProblem p = PointwiseProblem({2, 648, 480, 66, 67, 1, true, kRelu});
  ASSERT_GE(p.dst.bytes(), 16 << 20);
  const PointwiseTensors data(p);
  Options options = {.threads = 2, .src = Mapped::kOnTheWay, .moments = true};
  const Result aligned = RunPointwise(p, data, Direction::kForward, options);
  ExpectMomentsOf(p, aligned);
  options.unaligned = true;
  EXPECT_EQ(RunPointwise(p, data, Direction::kForward, options), aligned);
}

TEST(PointwiseDirectionsTest, SayWhatTheyTake) {
  const ConvolutionProblem p = PointwiseProblem({2, 24, 40, 7, 7});
  const auto create = [&](Direction direction) { return CreatePointwise(p, direction); };
  EXPECT_TRUE(create(Direction::kForward)->takes_affine());
  EXPECT_GT(create(Direction::kForward)->moments_pixels(), 0);
  EXPECT_FALSE(create(Direction::kForward)->takes_gradient_map());
  EXPECT_FALSE(create(Direction::kBackwardData)->takes_affine());
  EXPECT_FALSE(create(Direction::kBackwardData)->takes_gradient_map());
  EXPECT_EQ(create(Direction::kBackwardData)->moments_pixels(), 0);
  EXPECT_GT(create(Direction::kBackwardData)->gradient_sums_pixels(), 0);
  EXPECT_TRUE(create(Direction::kBackwardWeights)->takes_affine());
  EXPECT_FALSE(create(Direction::kBackwardWeights)->takes_gradient_map());
  EXPECT_TRUE(create(Direction::kBackward)->takes_affine());
  EXPECT_TRUE(create(Direction::kBackward)->takes_gradient_map());
  EXPECT_GT(create(Direction::kBackward)->gradient_sums_pixels(), 0);
}

}  // namespace
}  // namespace ringtail
