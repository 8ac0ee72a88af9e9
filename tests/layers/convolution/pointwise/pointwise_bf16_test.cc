// 1x1 convolutions with bf16 products: against the definition in double precision, and what they do
// for the batch norms next to them. Only machines that multiply bf16 have the algorithms.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/kernels/bfloat16.h"
#include "layers/convolution/pointwise/pointwise_bf16_data.h"
#include "layers/convolution/pointwise/pointwise_bf16_weights.h"
#include "layers/kernels/bf16/bf16_products.h"
#include "tests/layers/convolution/pointwise_call.h"

namespace ringtail {
namespace {

using Direction = ConvolutionDirection;
using Options = PointwiseOptions;
using Result = PointwiseResult;

// bf16 blobs are rounded once (1.7e-3); sums of exact products in f32 are not rounded further.
constexpr double kBlobTolerance = 2.5e-3, kWeightTolerance = 1e-6;

class PointwiseBf16Test : public testing::TestWithParam<PointwiseShape> {
 protected:
  PointwiseBf16Test() : p_(PointwiseProblem(GetParam(), BlobType::kBf16)), data_(p_) {}
  void SetUp() override {
    if (!RT_KERNEL(HasBf16Products)()) GTEST_SKIP() << "no products of bf16";
  }
  Result Run(Direction direction, const Options& options = {}) const {
    return RunPointwise(p_, data_, direction, options);
  }
  bool HasWeights() const {
    return PointwiseBf16Weights::Create(p_, Direction::kBackwardWeights) != nullptr;
  }

  const ConvolutionProblem p_;
  PointwiseTensors data_;
};

TEST_P(PointwiseBf16Test, IsTheDefinition) {
  EXPECT_LT(RelativeError(Run(Direction::kForward).dst, DefinedForward(p_, data_)), kBlobTolerance);
  EXPECT_LT(RelativeError(Run(Direction::kBackwardData).diff_src, DefinedDiffSrc(p_, data_)),
            kBlobTolerance);
  if (!HasWeights()) return;
  EXPECT_LT(
      RelativeError(Run(Direction::kBackwardWeights).diff_weight, DefinedDiffWeight(p_, data_)),
      kWeightTolerance);
}

TEST_P(PointwiseBf16Test, AddsToDiffSrcAndRoundsOnce) {
  std::vector<double> expected = DefinedDiffSrc(p_, data_);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += data_.src[i];
  const Result sum = Run(Direction::kBackwardData, {.add = true});
  EXPECT_LT(RelativeError(sum.diff_src, expected), kBlobTolerance);
}

TEST_P(PointwiseBf16Test, MapsSrcToTheSameBits) {
  for (const Direction direction : {Direction::kForward, Direction::kBackwardWeights}) {
    if (direction == Direction::kBackwardWeights && !HasWeights()) continue;
    const Result before = Run(direction, {.src = Mapped::kBeforeUnaware});
    EXPECT_EQ(Run(direction, {.src = Mapped::kBefore}), before);
    EXPECT_EQ(Run(direction, {.src = Mapped::kOnTheWay}), before);
    EXPECT_EQ(Run(direction, {.threads = 3, .src = Mapped::kOnTheWay}), before);
  }
}

TEST_P(PointwiseBf16Test, TakesTheMomentsOfDst) {
  for (const Mapped src : {Mapped::kNot, Mapped::kOnTheWay}) {
    const Result without = Run(Direction::kForward, {.src = src});
    const Result with = Run(Direction::kForward, {.src = src, .moments = true});
    ExpectMomentsOf(p_, with);
    EXPECT_EQ(Run(Direction::kForward, {.threads = 2, .src = src, .moments = true}), with);
    EXPECT_EQ(with.dst, without.dst);
  }
}

TEST_P(PointwiseBf16Test, TakesTheSumsOfDiffSrc) {
  for (const bool add : {false, true}) {
    Options options = {.src = Mapped::kOnTheWay, .sums = true, .add = add};
    const Result with = Run(Direction::kBackwardData, options);
    ExpectSumsOf(p_, data_, options, with);
    options.threads = 2;
    EXPECT_EQ(Run(Direction::kBackwardData, options), with);
    EXPECT_EQ(Run(Direction::kBackwardData, {.add = add}).diff_src, with.diff_src);
  }
}

TEST_P(PointwiseBf16Test, TheSameBitsWithAnyNumberOfThreads) {
  for (const Direction direction :
       {Direction::kForward, Direction::kBackwardData, Direction::kBackwardWeights}) {
    if (direction == Direction::kBackwardWeights && !HasWeights()) continue;
    const Result one = Run(direction);
    EXPECT_EQ(Run(direction, {.threads = 2}), one);
    EXPECT_EQ(Run(direction, {.threads = 5}), one);
  }
}

TEST_P(PointwiseBf16Test, NanReachesItsPixelAlone) {
  const int64_t last = p_.src.plane() - 1;
  data_.src[last] = NAN;
  const Result result = Run(Direction::kForward, {.moments = true});
  for (int64_t i = 0; i < static_cast<int64_t>(result.dst.size()); ++i) {
    const bool poisoned = i / p_.dst.plane() < p_.dst.C && i % p_.dst.plane() == last;
    ASSERT_EQ(std::isnan(result.dst[i]), poisoned) << i;
  }
  const BlobMoments shape = {{.part_pixels = result.part_pixels}};
  EXPECT_TRUE(std::isnan(result.m2[shape.At(p_.dst, 0, shape.parts(p_.dst) - 1, 0)]));
}

constexpr auto kRelu = Activation::kRelu, kRelu6 = Activation::kRelu6;

INSTANTIATE_TEST_SUITE_P(
    Shapes, PointwiseBf16Test,
    testing::Values(
        // Panels of one and of two blocks; channels that do not fill a block.
        PointwiseShape{2, 16, 16, 7, 7}, PointwiseShape{2, 16, 12, 7, 7, 1, true},
        PointwiseShape{5, 32, 48, 7, 7}, PointwiseShape{3, 24, 40, 14, 14, 1, true, kRelu},
        PointwiseShape{2, 3, 5, 13, 11, 1, true, kRelu6}, PointwiseShape{2, 17, 33, 5, 5},
        PointwiseShape{1, 144, 24, 28, 28, 1, true}, PointwiseShape{4, 48, 80, 1, 1},
        // Planes that are cut, unequally, and runs over several samples, the last not full.
        PointwiseShape{1, 16, 32, 56, 56}, PointwiseShape{1, 112, 32, 37, 41},
        PointwiseShape{11, 16, 32, 3, 3}, PointwiseShape{40, 16, 16, 2, 3},
        PointwiseShape{2, 1312, 16, 7, 7, 1, true, kRelu}, PointwiseShape{2, 16, 1312, 7, 7}));

TEST(PointwiseBf16ProblemTest, SaysWhatItTakesAndWhatItIsFor) {
  ConvolutionProblem p = PointwiseProblem({2, 16, 32, 7, 7}, BlobType::kBf16);
  const bool has_products = RT_KERNEL(HasBf16Products)();
  const auto forward = PointwiseBf16Data::Create(p, Direction::kForward);
  const auto data = PointwiseBf16Data::Create(p, Direction::kBackwardData);
  const auto weights = PointwiseBf16Weights::Create(p, Direction::kBackwardWeights);
  ASSERT_EQ(forward != nullptr, has_products);
  ASSERT_EQ(data != nullptr, has_products);
  ASSERT_EQ(weights != nullptr, has_products);
  if (has_products) {
    EXPECT_TRUE(forward->takes_affine() && !data->takes_affine() && weights->takes_affine());
    EXPECT_TRUE(forward->moments_pixels() > 0 && data->moments_pixels() == 0);
    EXPECT_TRUE(data->gradient_sums_pixels() > 0 && forward->gradient_sums_pixels() == 0);
    EXPECT_TRUE(data->adds_to_diff_src() && !forward->adds_to_diff_src());
  }
  EXPECT_EQ(PointwiseBf16Data::Create(p, Direction::kBackwardWeights), nullptr);
  p.src.type = BlobType::kF32;
  EXPECT_EQ(PointwiseBf16Data::Create(p, Direction::kForward), nullptr);
  p.src.type = BlobType::kBf16;
  p.window.SH = 2;
  EXPECT_EQ(PointwiseBf16Data::Create(p, Direction::kForward), nullptr);
}

}  // namespace
}  // namespace ringtail
