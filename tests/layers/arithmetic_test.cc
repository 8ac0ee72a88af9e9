// Add and multiply: values and gradients with equal and with mixed layouts, in place and not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "layers/add.h"
#include "layers/multiply.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

using ::testing::Each;
using ::testing::Eq;
using ::testing::HasSubstr;

using Blobs = std::vector<std::vector<float>>;

Blobs RandomInputs(const std::vector<BlobDesc>& descs) {
  Blobs blobs;
  for (size_t i = 0; i < descs.size(); ++i) blobs.push_back(RandomPlain(descs[i], 10 + i, -4, 5));
  return blobs;
}

BlobDesc WithBlock(BlobDesc desc, int64_t block) {
  desc.block = block;
  return desc;
}

// Layouts of the inputs of one case.
class ArithmeticTest : public testing::TestWithParam<std::vector<int64_t>> {
 protected:
  std::vector<BlobDesc> Descs(const BlobDesc& shape) const {
    std::vector<BlobDesc> descs;
    for (const int64_t block : GetParam()) descs.push_back(WithBlock(shape, block));
    return descs;
  }
};

TEST_P(ArithmeticTest, AddsWithFusedActivation) {
  for (const BlobDesc& shape : {BlobDesc{2, 17, 5, 7}, BlobDesc{1, 64, 24, 24}}) {
    const std::vector<BlobDesc> descs = Descs(shape);
    const Blobs src = RandomInputs(descs);
    const std::vector<float> diff_dst = RandomPlain(descs[0], 3);
    for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kRelu6}) {
      for (const bool in_place : {true, false}) {
        const AddConfig config;
        AddLayer layer(config);
        if (activation != Activation::kNone) {
          ASSERT_TRUE(layer.FuseActivation(activation));
        }
        LayerRunner runner(&layer, descs, {.in_place = in_place});
        ASSERT_TRUE(runner.status().ok()) << runner.status().ToString();
        const float low = activation == Activation::kNone ? -INFINITY : 0;
        const float high = activation == Activation::kRelu6 ? 6 : INFINITY;
        std::vector<float> dst = src[0], diff = diff_dst;
        for (size_t i = 0; i < dst.size(); ++i) {
          for (size_t j = 1; j < src.size(); ++j) dst[i] += src[j][i];
          dst[i] = std::clamp(dst[i], low, high);
          if (dst[i] == low || dst[i] == high) diff[i] = 0;
        }
        EXPECT_EQ(runner.Forward(src), dst);
        EXPECT_THAT(runner.Backward(diff_dst), Each(Eq(diff)));
        EXPECT_EQ(runner.problems(), "");
      }
    }
  }
}

TEST_P(ArithmeticTest, MultipliesTwo) {
  for (const BlobDesc& shape : {BlobDesc{2, 17, 5, 7}, BlobDesc{1, 64, 24, 24}}) {
    std::vector<BlobDesc> descs = Descs(shape);
    descs.resize(2);
    const Blobs src = RandomInputs(descs);
    const std::vector<float> diff_dst = RandomPlain(descs[0], 3);
    for (const std::vector<char>& needs : std::vector<std::vector<char>>{{1, 1}, {1, 0}, {0, 1}}) {
      for (const bool in_place : {true, false}) {
        const MultiplyConfig config;
        MultiplyLayer layer(config);
        LayerRunner runner(&layer, descs, {.in_place = in_place, .needs_diff_src = needs});
        ASSERT_TRUE(runner.status().ok()) << runner.status().ToString();
        std::vector<float> dst = src[0];
        Blobs diff = {src[1], src[0]};
        for (size_t i = 0; i < dst.size(); ++i) {
          dst[i] *= src[1][i];
          for (std::vector<float>& d : diff) d[i] *= diff_dst[i];
        }
        for (size_t j = 0; j < diff.size(); ++j) {
          if (!needs[j]) diff[j].clear();
        }
        EXPECT_EQ(runner.Forward(src), dst);
        EXPECT_EQ(runner.Backward(diff_dst), diff);
        EXPECT_EQ(runner.problems(), "");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, ArithmeticTest,
                         testing::Values(std::vector<int64_t>{16, 16},
                                         std::vector<int64_t>{8, 8, 8}, std::vector<int64_t>{1, 1},
                                         std::vector<int64_t>{16, 1},
                                         std::vector<int64_t>{1, 16, 8},
                                         std::vector<int64_t>{8, 16}));

TEST(AddTest, SkipsGradientsThatAreNotNeeded) {
  const BlobDesc desc{2, 5, 3, 3, 8};
  const AddConfig config;
  AddLayer layer(config);
  ASSERT_TRUE(layer.FuseActivation(Activation::kRelu));
  LayerRunner runner(&layer, {desc, desc}, {.needs_diff_src = {0, 1}});
  const Blobs src = RandomInputs({desc, desc});
  const std::vector<float> diff_dst = RandomPlain(desc, 3), dst = runner.Forward(src);
  const Blobs diff_src = runner.Backward(diff_dst);
  EXPECT_TRUE(diff_src[0].empty());
  for (size_t i = 0; i < dst.size(); ++i) ASSERT_EQ(diff_src[1][i], dst[i] > 0 ? diff_dst[i] : 0);
}

TEST(ArithmeticShapesTest, InputsMustHaveOneShape) {
  const AddConfig add_config;
  AddLayer add(add_config), lonely(add_config);
  const LayerRunner add_runner(&add, {{2, 5, 3, 3}, {2, 5, 3, 3}, {2, 6, 3, 3}});
  EXPECT_THAT(add_runner.status().message(),
              HasSubstr("input 2 is 2x6x3x3, but input 0 is 2x5x3x3"));
  const LayerRunner lonely_runner(&lonely, {{2, 5, 3, 3}});
  EXPECT_THAT(lonely_runner.status().message(), HasSubstr("two or more"));
  const MultiplyConfig multiply_config;
  MultiplyLayer multiply(multiply_config), triple(multiply_config);
  const LayerRunner multiply_runner(&multiply, {{2, 5, 3, 3}, {2, 5, 3, 4}});
  EXPECT_EQ(multiply_runner.status().code(), StatusCode::kInvalidArgument);
  const LayerRunner triple_runner(&triple, {{2, 5}, {2, 5}, {2, 5}});
  EXPECT_THAT(triple_runner.status().message(), HasSubstr("3 inputs"));
}

}  // namespace
}  // namespace ringtail
