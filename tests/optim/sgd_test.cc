#include "optim/sgd.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/optim/reference_run.h"
#include "tests/optim/test_arena.h"

namespace ringtail {
namespace {

constexpr int kSteps = 5;
constexpr double kFirstRate = 0.1;
constexpr double kTolerance = 2e-6;  // a few roundings of f32 on numbers around 1

struct Case {
  const char* name;
  const char* config;
  double momentum;
  bool nesterov;
  double coupled, decoupled;  // on weights; vectors have none
};

class SgdReferenceTest : public testing::TestWithParam<Case> {};

TEST_P(SgdReferenceTest, FollowsTheFormulaInDoublePrecision) {
  const Case& c = GetParam();
  ExpectFollowsReference(
      c.config, kFirstRate, kTolerance, [&](const ReferenceStep& s, ReferenceTensor* tensor) {
        tensor->SgdStep(s.parameter.grad(), s.grad_scale, s.rate, c.momentum, c.nesterov,
                        s.is_vector() ? 0 : c.coupled, s.is_vector() ? 0 : c.decoupled);
      });
}

INSTANTIATE_TEST_SUITE_P(
    Rules, SgdReferenceTest,
    testing::Values(Case{"Plain", "sgd { momentum: 0 } weight_decay: 0", 0, false, 0, 0},
                    Case{"PlainCoupled", "sgd { momentum: 0 } weight_decay: 0.3", 0, false, 0.3, 0},
                    Case{"Momentum", "sgd { momentum: 0.8 } weight_decay: 0", 0.8, false, 0, 0},
                    Case{"Coupled", "sgd { momentum: 0.8 } weight_decay: 0.3", 0.8, false, 0.3, 0},
                    Case{"Nesterov", "sgd { momentum: 0.8 nesterov: true } weight_decay: 0.3", 0.8,
                         true, 0.3, 0},
                    Case{"Decoupled",
                         "sgd { momentum: 0.8 decoupled_decay: true } weight_decay: 0.3", 0.8,
                         false, 0, 0.3},
                    Case{"Default", "", 0.9, false, 5e-4, 0}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(SgdTest, ConstantGradientFollowsTheClosedForm) {
  // v_k = g (1 - m^k) / (1 - m), so w_n = w_0 - lr g (n - m (1 - m^n) / (1 - m)) / (1 - m).
  constexpr double kMomentum = 0.9, kRate = 0.1;
  const auto arena = MakeTestArena();
  const auto optimizer = MakeOptimizer("sgd { momentum: 0.9 } weight_decay: 0", arena.get());
  DrawGradients(0, arena.get());
  const std::vector<float> start = Copy(arena->values());
  for (int64_t step = 0; step < kSteps; ++step) optimizer->Step(step, kRate, 1);
  const double geometric = (1 - std::pow(kMomentum, kSteps)) / (1 - kMomentum);
  const double factor = kRate * (kSteps - kMomentum * geometric) / (1 - kMomentum);
  for (size_t i = 0; i < start.size(); ++i) {
    ASSERT_NEAR(arena->values()[i], start[i] - factor * arena->grads()[i], 1e-5) << i;
  }
}

TEST(SgdTest, KeepsNoStateWithoutMomentum) {
  const auto arena = MakeTestArena();
  EXPECT_TRUE(MakeOptimizer("sgd { momentum: 0 }", arena.get())->state().empty());
  const auto state = MakeOptimizer("sgd { momentum: 0.5 }", arena.get())->state();
  ASSERT_EQ(state.size(), 1);
  EXPECT_EQ(state[0].name, "momentum");
  EXPECT_EQ(state[0].values.size(), arena->values().size());
}

TEST(SgdTest, DescribesItself) {
  const auto arena = MakeTestArena();
  EXPECT_EQ(MakeOptimizer("", arena.get())->Describe(), "SGD momentum=0.9 weight_decay=0.0005");
  EXPECT_EQ(
      MakeOptimizer("sgd { nesterov: true decoupled_decay: true } decay_vectors: true", arena.get())
          ->Describe(),
      "SGD momentum=0.9 nesterov decoupled weight_decay=0.0005 (vectors, too)");
}

}  // namespace
}  // namespace ringtail
