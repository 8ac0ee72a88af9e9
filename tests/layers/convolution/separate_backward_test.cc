#include "layers/convolution/separate_backward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "layers/convolution/onednn_convolution.h"
#include "layers/convolution/pointwise/pointwise_convolution.h"
#include "layers/kernels/pointwise.h"
#include "tests/layers/layer_runner.h"
#include "tests/layers/test_affine.h"

namespace ringtail {
namespace {

// A 1x1 convolution.
ConvolutionProblem Problem() {
  const int64_t lanes = RT_KERNEL(PointwiseLanes)();
  ConvolutionProblem problem;
  problem.src = problem.dst = {2, 32, 8, 8, lanes};
  return problem;
}

// Both gradients and the bias', as from an algorithm for each.
TEST(SeparateBackwardTest, WritesBothGradients) {
  ConvolutionProblem problem = Problem();
  problem.bias = true;
  const auto create = [&](ConvolutionDirection direction) {
    return CreatePointwise(problem, direction);
  };
  const GuardedBuffer src(problem.src.bytes()), diff_dst(problem.dst.bytes());
  CopyToLayout(RandomPlain(problem.src, 1), problem.src, src.floats());
  CopyToLayout(RandomPlain(problem.dst, 2), problem.dst, diff_dst.floats());
  const std::vector<float> weight = RandomPlain({1, problem.src.C * problem.dst.C}, 3);
  struct Gradients {
    std::vector<float> src, weight, bias;
    bool operator==(const Gradients&) const = default;
  };
  const auto run = [&](const std::vector<ConvolutionAlgorithm*>& algorithms) {
    Gradients g{std::vector<float>(problem.src.elements(), NAN),
                std::vector<float>(weight.size(), NAN), std::vector<float>(problem.dst.C, NAN)};
    for (ConvolutionAlgorithm* algorithm : algorithms) {
      const GuardedBuffer scratch(algorithm->scratch_bytes());
      algorithm->Run({.src = src.floats(),
                      .weight = weight.data(),
                      .diff_dst = diff_dst.floats(),
                      .diff_src = g.src.data(),
                      .diff_weight = g.weight.data(),
                      .diff_bias = g.bias.data(),
                      .scratch = scratch.data()});
      EXPECT_TRUE(scratch.GuardsIntact());
    }
    return g;
  };
  const auto weights = create(ConvolutionDirection::kBackwardWeights);
  const auto data = create(ConvolutionDirection::kBackwardData);
  SeparateBackward both(create(ConvolutionDirection::kBackwardWeights),
                        create(ConvolutionDirection::kBackwardData));
  const Gradients expected = run({weights.get(), data.get()});
  EXPECT_EQ(run({&both}), expected);
  for (const auto* v : {&expected.src, &expected.weight, &expected.bias}) {
    EXPECT_TRUE(std::ranges::none_of(*v, [](float x) { return std::isnan(x); }));
  }
  EXPECT_EQ(both.scratch_bytes(), std::max(weights->scratch_bytes(), data->scratch_bytes()));
  EXPECT_EQ(both.description(), "pointwise / pointwise");
}

// The sums for a batch norm before the convolution come from backward-data, if backward-weights
// maps src.
TEST(SeparateBackwardTest, TakesSums) {
  ConvolutionProblem problem = Problem();
  problem.src_is_affine = true;
  const auto create = [&](ConvolutionDirection direction) {
    return CreatePointwise(problem, direction);
  };
  using Direction = ConvolutionDirection;
  const auto data = create(Direction::kBackwardData);
  SeparateBackward both(create(Direction::kBackwardWeights), create(Direction::kBackwardData));
  ASSERT_GT(data->gradient_sums_pixels(), 0);
  EXPECT_EQ(both.gradient_sums_pixels(), data->gradient_sums_pixels());
  const SeparateBackward unaware(CreateOneDnnConvolution(problem, Direction::kBackwardWeights),
                                 create(Direction::kBackwardData));
  EXPECT_EQ(unaware.gradient_sums_pixels(), 0);

  const TestAffine affine(problem.src);
  const GuardedBuffer src(problem.src.bytes()), diff_dst(problem.dst.bytes());
  CopyToLayout(RandomPlain(problem.src, 1), problem.src, src.floats());
  CopyToLayout(RandomPlain(problem.dst, 2), problem.dst, diff_dst.floats());
  const std::vector<float> weight = RandomPlain({1, problem.src.C * problem.dst.C}, 3);
  const auto run = [&](ConvolutionAlgorithm* algorithm, float* diff_weight) {
    const GuardedBuffer scratch(algorithm->scratch_bytes()), diff_src(problem.src.bytes());
    BlobGradientSums sums{{.part_pixels = algorithm->gradient_sums_pixels()}};
    std::vector<double> g(sums.elements(problem.src), NAN), gx(g);
    sums.g = g.data();
    sums.gx = gx.data();
    algorithm->Run({.src = src.floats(),
                    .weight = weight.data(),
                    .diff_dst = diff_dst.floats(),
                    .src_affine = affine.affine(),
                    .diff_src_sums = sums,
                    .diff_src = diff_src.floats(),
                    .diff_weight = diff_weight,
                    .scratch = scratch.data()});
    g.insert(g.end(), gx.begin(), gx.end());
    return g;
  };
  std::vector<float> diff_weight(weight.size());
  const std::vector<double> sums = run(&both, diff_weight.data());
  EXPECT_EQ(run(data.get(), nullptr), sums);
  EXPECT_TRUE(std::ranges::none_of(sums, [](double x) { return std::isnan(x); }));
}

}  // namespace
}  // namespace ringtail
