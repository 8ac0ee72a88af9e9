// Both gradients of a 1x1 convolution in one go, against the definition in double precision.
#include "layers/convolution/pointwise/pointwise_backward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "layers/convolution/pointwise/pointwise_convolution.h"
#include "tests/layers/convolution/pointwise_call.h"

namespace ringtail {
namespace {

using Direction = ConvolutionDirection;
using Options = PointwiseOptions;
using Result = PointwiseResult;

class PointwiseBackwardTest : public testing::TestWithParam<PointwiseShape> {
 protected:
  PointwiseBackwardTest() : p_(PointwiseProblem(GetParam())), data_(p_) {}
  Result Run(const Options& options) const {
    return RunPointwise(p_, data_, Direction::kBackward, options);
  }

  static std::vector<Options> AllMaps() {
    std::vector<Options> all;
    for (const Mapped src : {Mapped::kNot, Mapped::kOnTheWay}) {
      all.push_back({.src = src});
      for (const float high : {6.0F, kUnbounded}) {
        all.push_back({.src = src, .diff_dst = Mapped::kOnTheWay, .high = high});
      }
      all.push_back(
          {.src = src, .diff_dst = Mapped::kOnTheWay, .low = -kUnbounded, .high = kUnbounded});
    }
    return all;
  }

  const ConvolutionProblem p_;
  PointwiseTensors data_;
};

TEST_P(PointwiseBackwardTest, IsTheDefinition) {
  for (const Options& options : AllMaps()) {
    const Result actual = Run(options);
    const PointwiseTensors mapped = MappedData(p_, data_, options);
    EXPECT_LT(RelativeError(actual.diff_src, DefinedDiffSrc(p_, mapped)), 1e-6);
    EXPECT_LT(RelativeError(actual.diff_weight, DefinedDiffWeight(p_, mapped)), 1e-6);
  }
}

TEST_P(PointwiseBackwardTest, MapsToTheSameBits) {
  for (Options options : AllMaps()) {
    const Result on_the_way = Run(options);
    for (Mapped* mapped : {&options.src, &options.diff_dst}) {
      if (*mapped == Mapped::kOnTheWay) *mapped = Mapped::kBefore;
    }
    EXPECT_EQ(Run(options), on_the_way);
    options.src = options.src == Mapped::kBefore ? Mapped::kBeforeUnaware : options.src;
    EXPECT_EQ(Run(options), on_the_way);
  }
}

TEST_P(PointwiseBackwardTest, TheSameBitsWithAnyNumberOfThreads) {
  for (Options options : AllMaps()) {
    const Result one = Run(options);
    for (const int threads : {2, 3, 5}) {
      options.threads = threads;
      EXPECT_EQ(Run(options), one) << threads;
    }
  }
}

TEST_P(PointwiseBackwardTest, TakesTheSumsOfDiffSrc) {
  for (Options options : AllMaps()) {
    if (options.src != Mapped::kOnTheWay) continue;
    const Result without = Run(options);
    options.sums = true;
    const Result with = Run(options);
    ExpectSumsOf(p_, data_, options, with);
    EXPECT_EQ(with.diff_src, without.diff_src);
    EXPECT_EQ(with.diff_weight, without.diff_weight);
    for (const int threads : {2, 3}) {
      options.threads = threads;
      EXPECT_EQ(Run(options), with) << threads;
    }
  }
}

TEST_P(PointwiseBackwardTest, NanReachesTheSums) {
  const BlobDesc &s = p_.src, &d = p_.dst;
  data_.diff_dst[((d.N - 1) * d.C + d.C - 1) * d.plane()] = NAN;
  const Result r = Run({.threads = 2,
                        .src = Mapped::kOnTheWay,
                        .low = -kUnbounded,
                        .high = kUnbounded,
                        .sums = true});
  const BlobGradientSums parts = {{.part_pixels = r.part_pixels}};
  for (int64_t c = 0; c < s.C; ++c) {
    const int64_t at = parts.At(s, s.N - 1, 0, c / s.block) + c % s.block;
    ASSERT_TRUE(std::isnan(r.g[at])) << c;
    ASSERT_TRUE(std::isnan(r.gx[at])) << c;
    if (parts.elements(s) == parts.At(s, 0, 1, 0)) continue;  // one part
    const int64_t other =
        parts.parts(s) > 1 ? parts.At(s, s.N - 1, 1, c / s.block) : parts.At(s, 0, 0, c / s.block);
    ASSERT_FALSE(std::isnan(r.g[other + c % s.block])) << c;
  }
}

TEST_P(PointwiseBackwardTest, NanPasses) {
  const BlobDesc &s = p_.src, &d = p_.dst;
  const int64_t n = d.N - 1, k = d.C - 1;
  data_.diff_dst[(n * d.C + k) * d.plane()] = NAN;  // the first pixel of the last plane
  for (const Mapped map : {Mapped::kNot, Mapped::kOnTheWay}) {
    const Result r = Run({.threads = 2, .diff_dst = map, .low = -kUnbounded, .high = kUnbounded});
    for (int64_t c = 0; c < s.C; ++c) {
      ASSERT_TRUE(std::isnan(r.diff_src[(n * s.C + c) * s.plane()])) << c;
      ASSERT_TRUE(std::isnan(r.diff_weight[k * s.C + c])) << c;
      if (k > 0) {
        ASSERT_FALSE(std::isnan(r.diff_weight[c])) << c;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, PointwiseBackwardTest,
    testing::Values(PointwiseShape{2, 16, 16, 4, 4}, PointwiseShape{1, 32, 24, 7, 7},
                    PointwiseShape{3, 24, 40, 13, 11}, PointwiseShape{2, 40, 24, 1, 1},
                    PointwiseShape{1, 3, 5, 13, 11}, PointwiseShape{2, 17, 33, 5, 5},
                    PointwiseShape{2, 24, 144, 28, 28},   // columns are dst's
                    PointwiseShape{2, 144, 24, 28, 28},   // ... and src's
                    PointwiseShape{1, 16, 96, 56, 56},    // planes that are cut
                    PointwiseShape{11, 96, 24, 7, 7},     // slots, and runs of several samples
                    PointwiseShape{40, 32, 16, 2, 3},     // many pieces per run, the last fewer
                    PointwiseShape{12, 64, 48, 14, 14},   // slots that share no sample
                    PointwiseShape{3, 32, 48, 37, 41},    // an uneven cut
                    PointwiseShape{1, 576, 104, 14, 14},  // near what fits
                    PointwiseShape{1, 24, 704, 3, 5}));   // several passes for diff_src

// A diff_src of 16 MiB and more is written past the caches.
TEST(PointwiseBackwardStreamingTest, IsTheDefinition) {
  const ConvolutionProblem p = PointwiseProblem({1, 48, 16, 297, 301});
  ASSERT_GE(p.src.bytes(), 16 << 20);
  const PointwiseTensors data(p);
  Options options = {.src = Mapped::kOnTheWay, .diff_dst = Mapped::kOnTheWay};
  const Result actual = RunPointwise(p, data, Direction::kBackward, options);
  const PointwiseTensors mapped = MappedData(p, data, options);
  EXPECT_LT(RelativeError(actual.diff_src, DefinedDiffSrc(p, mapped)), 1e-6);
  EXPECT_LT(RelativeError(actual.diff_weight, DefinedDiffWeight(p, mapped)), 2e-6);
  options.threads = 2;
  EXPECT_EQ(RunPointwise(p, data, Direction::kBackward, options), actual);
  options.sums = true;
  const Result with_sums = RunPointwise(p, data, Direction::kBackward, options);
  ExpectSumsOf(p, data, options, with_sums);
  EXPECT_EQ(with_sums.diff_src, actual.diff_src);
}

TEST(PointwiseBackwardLimitsTest, FitsFewWeightsWithoutABias) {
  const auto fits = [](const PointwiseShape& shape) {
    const ConvolutionProblem p = PointwiseProblem(shape);
    const bool fits = PointwiseBackward::Fits(p);
    EXPECT_EQ(CreatePointwise(p, Direction::kBackward) != nullptr, fits) << shape;
    return fits;
  };
  EXPECT_TRUE(fits({2, 24, 144, 7, 7}));
  EXPECT_FALSE(fits({.N = 2, .C = 24, .K = 144, .H = 7, .W = 7, .bias = true}));
  EXPECT_TRUE(fits({2, 256, 256, 7, 7}));   // 256 KiB
  EXPECT_FALSE(fits({2, 256, 257, 7, 7}));  // padding counts
  EXPECT_FALSE(fits({2, 272, 256, 7, 7}));
}

TEST(PointwiseBackwardLimitsTest, NoneForOtherStrides) {
  const ConvolutionProblem p = PointwiseProblem({2, 24, 40, 8, 8, 2});
  EXPECT_EQ(CreatePointwise(p, Direction::kBackward), nullptr);
  EXPECT_NE(CreatePointwise(p, Direction::kBackwardWeights), nullptr);
}

}  // namespace
}  // namespace ringtail
