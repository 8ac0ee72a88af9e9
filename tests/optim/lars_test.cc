#include "optim/lars.h"

#include <gtest/gtest.h>

#include "tests/optim/reference_run.h"
#include "tests/optim/test_arena.h"

namespace ringtail {
namespace {

constexpr double kFirstRate = 2;
constexpr double kTolerance = 3e-6;  // a few roundings of f32 on numbers around 1

struct Case {
  const char* name;
  const char* config;
  double momentum, trust, epsilon;
  double decay, vector_decay;
};

class LarsReferenceTest : public testing::TestWithParam<Case> {};

TEST_P(LarsReferenceTest, FollowsTheFormulaInDoublePrecision) {
  const Case& c = GetParam();
  ExpectFollowsReference(
      c.config, kFirstRate, kTolerance, [&](const ReferenceStep& s, ReferenceTensor* tensor) {
        tensor->LarsStep(s.parameter.grad(), s.grad_scale, s.rate, c.momentum, c.trust, c.epsilon,
                         s.is_vector() ? c.vector_decay : c.decay, !s.is_vector());
      });
}

// Trust, decay and epsilon are so large that the place of each in the ratio matters.
INSTANTIATE_TEST_SUITE_P(
    Rules, LarsReferenceTest,
    testing::Values(
        Case{"Default", "lars {}", 0.9, 0.001, 1e-8, 5e-4, 0},
        Case{"NoDecay", "lars { momentum: 0.8 trust: 0.2 } weight_decay: 0", 0.8, 0.2, 1e-8, 0, 0},
        Case{"Decay", "lars { momentum: 0.8 trust: 0.2 } weight_decay: 0.3", 0.8, 0.2, 1e-8, 0.3,
             0},
        Case{"Epsilon", "lars { trust: 0.2 epsilon: 5 } weight_decay: 0.3", 0.9, 0.2, 5, 0.3, 0},
        Case{"NoMomentum", "lars { momentum: 0 trust: 0.2 } weight_decay: 0.3", 0, 0.2, 1e-8, 0.3,
             0},
        Case{"VectorsDecayButDoNotAdapt",
             "lars { trust: 0.2 } weight_decay: 0.1 decay_vectors: true", 0.9, 0.2, 1e-8, 0.1,
             0.1}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(LarsTest, AStepIsTheSameFractionOfEveryWeightTensorForAnyGradient) {
  // ||lr v|| = lr trust ||w|| g / (g + epsilon); biases and batch norm move by lr g.
  ExpectStepsAreParts("lars { trust: 0.01 } weight_decay: 0", 0.01, 1);
}

TEST(LarsTest, ATensorOfZerosStartsAsInSgd) {
  const auto arena = MakeTestArena();
  std::ranges::fill(arena->values(), 0.0F);
  DrawGradients(0, arena.get());
  MakeOptimizer("lars {}", arena.get())->Step(0, 0.5, 1);
  for (const Parameter& p : arena->parameters()) {
    for (int64_t i = 0; i < p.elements; ++i) {
      ASSERT_EQ(p.value()[i], -0.5F * p.grad()[i]) << p.spec.name;
    }
  }
}

TEST(LarsTest, DescribesItself) {
  const auto arena = MakeTestArena();
  EXPECT_EQ(MakeOptimizer("lars {}", arena.get())->Describe(),
            "LARS momentum=0.9 trust=0.001 weight_decay=0.0005");
}

}  // namespace
}  // namespace ringtail
