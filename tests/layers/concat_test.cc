#include "layers/concat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "layers/net.pb.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

const ConcatConfig kConfig;

// Channels and block of each input.
using Case = std::vector<std::pair<int64_t, int64_t>>;
class ConcatTest : public testing::TestWithParam<Case> {};

TEST_P(ConcatTest, PutsChannelsInOrderAndTakesThemApartAgain) {
  constexpr int64_t N = 3, H = 5, W = 7;
  std::vector<BlobDesc> descs;
  std::vector<std::vector<float>> src;
  std::vector<float> expected;
  for (const auto& [channels, block] : GetParam()) {
    descs.push_back({N, channels, H, W, block});
    src.push_back(RandomPlain(descs.back(), 10 + src.size()));
  }
  for (int64_t n = 0; n < N; ++n) {
    for (size_t i = 0; i < src.size(); ++i) {
      const int64_t sample = descs[i].C * H * W;
      expected.insert(expected.end(), src[i].begin() + n * sample,
                      src[i].begin() + (n + 1) * sample);
    }
  }
  ConcatLayer layer(kConfig);
  LayerRunner runner(&layer, descs);
  ASSERT_TRUE(runner.status().ok()) << runner.status().ToString();
  EXPECT_EQ(runner.Forward(src), expected);
  EXPECT_EQ(runner.Backward(expected), src);
  EXPECT_EQ(runner.problems(), "");
}

INSTANTIATE_TEST_SUITE_P(
    Inputs, ConcatTest,
    testing::Values(Case{{3, 1}, {5, 1}},               // plain
                    Case{{16, 8}, {8, 8}, {3, 8}},      // whole blocks, then a rest
                    Case{{3, 8}, {5, 8}, {8, 8}},       // two inputs in one block
                    Case{{16, 16}, {17, 16}, {2, 16}},  // the last is out of step
                    Case{{5, 1}, {17, 16}, {4, 8}}));   // mixed layouts

TEST(ConcatTest, LeavesOutGradientsThatAreNotNeeded) {
  const std::vector<BlobDesc> descs = {{2, 3, 4, 4, 8}, {2, 2, 4, 4, 8}};
  ConcatLayer layer(kConfig);
  LayerRunner runner(&layer, descs, {.needs_diff_src = {0, 1}});
  ASSERT_TRUE(runner.status().ok());
  const std::vector<std::vector<float>> src = {RandomPlain(descs[0], 1), RandomPlain(descs[1], 2)};
  const auto diff_src = runner.Backward(runner.Forward(src));
  EXPECT_TRUE(diff_src[0].empty());
  EXPECT_EQ(diff_src[1], src[1]);
}

TEST(ConcatTest, RejectsInputsThatDoNotFit) {
  ConcatLayer layer(kConfig);
  EXPECT_FALSE(layer.InferShape(std::array{BlobDesc{2, 3, 4, 4}}).ok());
  const auto info = layer.InferShape(std::array{BlobDesc{2, 3, 4, 4}, BlobDesc{2, 3, 4, 5}});
  ASSERT_FALSE(info.ok());
  EXPECT_THAT(info.status().message(), testing::HasSubstr("input 1 is 2x3x4x5"));
  const int64_t huge = int64_t{1} << 31;
  EXPECT_FALSE(layer.InferShape(std::array{BlobDesc{2, huge}, BlobDesc{2, huge}}).ok());
}

}  // namespace
}  // namespace ringtail
