// Rates by depth: a parameter at depth d moves as if the rate were learning_rate * layer_decay ^ d.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/optim/test_arena.h"

namespace ringtail {
namespace {

constexpr double kRate = 0.01;

// Two of everything: at depth 0 and at depth 2.
std::unique_ptr<ParameterArena> MakeArena(int depth) {
  return ParameterArena::Create({{.name = "conv.weight",
                                  .shape = {4, 3, 3, 3},
                                  .kind = ParameterKind::kConvolutionWeight,
                                  .depth = depth},
                                 {.name = "fc.weight",
                                  .shape = {5, 40},
                                  .kind = ParameterKind::kLinearWeight,
                                  .depth = depth},
                                 {.name = "fc.bias", .shape = {5}, .depth = depth}},
                                {})
      .value();
}

std::vector<float> WeightsAfterSteps(const std::string& optim, int depth, double rate) {
  const auto arena = MakeArena(depth);
  float value = -0.4F;
  for (float& v : arena->values()) v = value += 0.003F;
  const auto optimizer = MakeOptimizer(optim, arena.get());
  for (int64_t step = 0; step < 3; ++step) {
    DrawGradients(step, arena.get());
    optimizer->Step(step, rate, 1);
  }
  return Copy(arena->values());
}

class LayerDecayTest : public testing::TestWithParam<const char*> {};

TEST_P(LayerDecayTest, IsALowerRateWithDepth) {
  const std::string rule = GetParam();
  const std::string decayed = rule + " layer_decay: 0.5";
  EXPECT_EQ(WeightsAfterSteps(decayed, 0, kRate), WeightsAfterSteps(rule, 0, kRate));
  EXPECT_EQ(WeightsAfterSteps(decayed, 2, kRate), WeightsAfterSteps(rule, 0, kRate * 0.25));
  EXPECT_NE(WeightsAfterSteps(decayed, 2, kRate), WeightsAfterSteps(rule, 0, kRate));
}

INSTANTIATE_TEST_SUITE_P(Rules, LayerDecayTest,
                         testing::Values("sgd {}", "sgd { decoupled_decay: true }", "adam {}",
                                         "adamw {}", "lars {}", "lamb {}", "muon {}"));

TEST(LayerDecayRangeTest, IsAboveZeroAndAtMostOne) {
  EXPECT_EQ(ValidationMessage("layer_decay: 1"), "");
  EXPECT_THAT(ValidationMessage("layer_decay: 0"), testing::HasSubstr("layer_decay"));
  EXPECT_THAT(ValidationMessage("layer_decay: 1.5"), testing::HasSubstr("layer_decay"));
}

}  // namespace
}  // namespace ringtail
