#include "layers/highway_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "core/kernel_isa.h"
#include "layers/net.pb.h"
#include "tests/layers/layer_runner.h"

namespace ringtail {
namespace {

const HighwayGateConfig kConfig;

double Sigmoid(double t) { return 1 / (1 + std::exp(-t)); }

// Runs one gate with the inputs in these blocks and compares with the formulas in double.
void CheckAgainstFormula(const std::array<int64_t, 3>& blocks, float gate_range, bool in_place) {
  std::vector<BlobDesc> descs;
  descs.reserve(blocks.size());
  for (const int64_t block : blocks) descs.push_back({2, 17, 9, 5, block});
  const std::vector<std::vector<float>> src = {RandomPlain(descs[0], 1),
                                               RandomPlain(descs[1], 2, -gate_range, gate_range),
                                               RandomPlain(descs[2], 3)};
  const std::vector<float> diff_dst = RandomPlain(descs[0], 4);
  HighwayGateLayer layer(kConfig);
  LayerRunner runner(&layer, descs, {.in_place = in_place});
  ASSERT_TRUE(runner.status().ok());
  const std::vector<float> dst = runner.Forward(src);
  const auto diff = runner.Backward(diff_dst);
  for (size_t i = 0; i < dst.size(); ++i) {
    const double h = src[0][i], t = src[1][i], x = src[2][i], g = diff_dst[i], s = Sigmoid(t);
    ASSERT_NEAR(dst[i], s * h + (1 - s) * x, 1e-6) << "t = " << t;
    ASSERT_NEAR(diff[0][i], s * g, 1e-6) << "t = " << t;
    ASSERT_NEAR(diff[1][i], s * Sigmoid(-t) * (h - x) * g, 1e-6) << "t = " << t;
    ASSERT_NEAR(diff[2][i], (1 - s) * g, 1e-6) << "t = " << t;
  }
  EXPECT_EQ(runner.problems(), "");
}

TEST(HighwayGateTest, FollowsItsFormulaInEveryLayoutAndInstructionSet) {
  const KernelIsa best = SelectedKernelIsa();
  for (const KernelIsa isa : {KernelIsa::kBaseline, KernelIsa::kAvx2, KernelIsa::kAvx512}) {
    if (isa > best) break;
    SetKernelIsaForTest(isa);
    for (const bool in_place : {false, true}) {
      for (const auto& blocks :
           {std::array<int64_t, 3>{1, 1, 1}, {16, 16, 16}, {8, 1, 16}, {1, 16, 1}}) {
        CheckAgainstFormula(blocks, 5, in_place);
      }
    }
    CheckAgainstFormula({8, 8, 8}, 200, false);  // far beyond where e^t leaves the range of a float
  }
  SetKernelIsaForTest(best);
}

// dst with h = 1, x = 0 is the gate itself.
std::vector<float> Gate(const std::vector<float>& t) {
  const BlobDesc desc = {1, static_cast<int64_t>(t.size())};
  HighwayGateLayer layer(kConfig);
  LayerRunner runner(&layer, {desc, desc, desc}, {.training = false});
  RT_CHECK(runner.status().ok(), runner.status().ToString());
  return runner.Forward({std::vector<float>(t.size(), 1), t, std::vector<float>(t.size(), 0)});
}

TEST(HighwayGateTest, GateIsRightToTheLastBitsAndKeepsNan) {
  std::vector<float> t;
  for (float value = -80; value < 80; value += 0.0625F) t.push_back(value);
  const std::vector<float> gate = Gate(t);
  for (size_t i = 0; i < t.size(); ++i) {
    EXPECT_NEAR(gate[i] / Sigmoid(t[i]), 1, 3e-7) << "t = " << t[i];
  }
  const std::vector<float> special = Gate({INFINITY, -INFINITY, NAN});
  EXPECT_EQ(special[0], 1.0F);
  EXPECT_NEAR(special[1], 0, 1e-37);
  EXPECT_TRUE(std::isnan(special[2]));
}

TEST(HighwayGateTest, LeavesOutGradientsThatAreNotNeeded) {
  const BlobDesc desc = {2, 5, 3, 3, 8};
  const std::vector<std::vector<float>> src = {RandomPlain(desc, 1), RandomPlain(desc, 2),
                                               RandomPlain(desc, 3)};
  HighwayGateLayer all(kConfig), some(kConfig);
  LayerRunner all_runner(&all, {desc, desc, desc});
  const auto expected = all_runner.Backward(all_runner.Forward(src));
  for (size_t skip = 0; skip < 3; ++skip) {
    std::vector<char> needs(3, 1);
    needs[skip] = 0;
    LayerRunner runner(&some, {desc, desc, desc}, {.needs_diff_src = needs});
    const auto diff = runner.Backward(runner.Forward(src));
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(diff[i], i == skip ? std::vector<float>() : expected[i]) << i;
    }
  }
}

TEST(HighwayGateTest, RejectsInputsThatDoNotFit) {
  HighwayGateLayer layer(kConfig);
  const BlobDesc desc = {2, 3, 4, 4};
  EXPECT_FALSE(layer.InferShape(std::array{desc, desc}).ok());
  const auto info = layer.InferShape(std::array{desc, desc, BlobDesc{2, 3, 4, 5}});
  ASSERT_FALSE(info.ok());
  EXPECT_THAT(info.status().message(), testing::HasSubstr("input 2 is 2x3x4x5"));
}

}  // namespace
}  // namespace ringtail
