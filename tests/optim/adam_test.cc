#include "optim/adam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/optim/reference_run.h"
#include "tests/optim/test_arena.h"

namespace ringtail {
namespace {

constexpr int kSteps = 5;
constexpr double kFirstRate = 0.1, kBeta1 = 0.8, kBeta2 = 0.95;
constexpr double kTolerance = 5e-6;  // a few roundings of f32 on numbers around 1

struct Case {
  const char* name;
  const char* config;
  double epsilon;
  double coupled, decoupled;  // on weights; vectors have none
};

class AdamReferenceTest : public testing::TestWithParam<Case> {};

TEST_P(AdamReferenceTest, FollowsTheFormulaInDoublePrecision) {
  const Case& c = GetParam();
  ExpectFollowsReference(
      c.config, kFirstRate, kTolerance, [&](const ReferenceStep& s, ReferenceTensor* tensor) {
        tensor->AdamStep(s.parameter.grad(), s.grad_scale, s.step, s.rate, kBeta1, kBeta2,
                         c.epsilon, s.is_vector() ? 0 : c.coupled, s.is_vector() ? 0 : c.decoupled);
      });
}

// A large epsilon shows whether it is outside the corrected square root.
INSTANTIATE_TEST_SUITE_P(
    Rules, AdamReferenceTest,
    testing::Values(
        Case{"Adam", "adam { beta1: 0.8 beta2: 0.95 epsilon: 1e-3 } weight_decay: 0", 1e-3, 0, 0},
        Case{"LargeEpsilon", "adam { beta1: 0.8 beta2: 0.95 epsilon: 0.5 } weight_decay: 0", 0.5, 0,
             0},
        Case{"Coupled", "adam { beta1: 0.8 beta2: 0.95 epsilon: 0.1 } weight_decay: 0.3", 0.1, 0.3,
             0},
        Case{"AdamW", "adamw { beta1: 0.8 beta2: 0.95 epsilon: 0.1 } weight_decay: 0.3", 0.1, 0,
             0.3}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(AdamTest, ConstantGradientMovesEveryWeightByTheRate) {
  // m / (1 - b1^t) = g and v / (1 - b2^t) = g^2 at every step, so each step is lr sign(g), in the
  // first parameter as in the last.
  constexpr double kRate = 0.01;
  const auto arena = MakeTestArena();
  const auto optimizer = MakeOptimizer("adam {} weight_decay: 0", arena.get());
  for (const Parameter& p : arena->parameters()) {
    for (int64_t i = 0; i < p.elements; ++i) p.grad()[i] = i % 2 == 0 ? 0.5F : -3.0F;
  }
  const std::vector<float> start = Copy(arena->values());
  for (int64_t step = 0; step < kSteps; ++step) {
    optimizer->Step(step, kRate, 1);
    for (const Parameter& p : arena->parameters()) {
      for (int64_t i = 0; i < p.elements; ++i) {
        const double moved = kRate * static_cast<double>(step + 1) * (i % 2 == 0 ? -1 : 1);
        ASSERT_NEAR(p.value()[i], start[p.offset + i] + moved, 2e-6) << p.spec.name << " " << step;
      }
    }
  }
}

// As above, of a parameter that a later step updates first: its moments are as young as in step 0.
TEST(AdamTest, AThawedWeightMovesByTheRateFromItsFirstStepOn) {
  constexpr double kRate = 0.01;
  constexpr int64_t kThaw = 1000;
  const auto arena = MakeTestArena();
  const auto optimizer = MakeOptimizer("adam {} weight_decay: 0", arena.get());
  optimizer->set_first_steps({kThaw, kThaw, kThaw});
  std::ranges::fill(arena->grads(), 0.5F);
  const std::vector<float> start = Copy(arena->values());
  for (int64_t step = 0; step < kSteps; ++step) {
    optimizer->Step(kThaw + step, kRate, 1);
    for (const Parameter& p : arena->parameters()) {
      const double moved = kRate * static_cast<double>(step + 1);
      ASSERT_NEAR(p.value()[0], start[p.offset] - moved, 2e-6) << p.spec.name << " " << step;
    }
  }
}

TEST(AdamTest, StaysAtRestWithoutAGradient) {
  const auto arena = MakeTestArena();
  const std::vector<float> start = Copy(arena->values());
  const auto optimizer = MakeOptimizer("adam {} weight_decay: 0", arena.get());
  for (int64_t step = 0; step < kSteps; ++step) optimizer->Step(step, 0.1, 1);
  EXPECT_EQ(Copy(arena->values()), start);
}

TEST(AdamTest, DescribesItself) {
  const auto arena = MakeTestArena();
  EXPECT_EQ(MakeOptimizer("adam {}", arena.get())->Describe(),
            "Adam beta1=0.9 beta2=0.999 epsilon=1e-08 weight_decay=0.0005");
  EXPECT_EQ(MakeOptimizer("adamw { beta2: 0.99 } weight_decay: 0.01", arena.get())->Describe(),
            "AdamW beta1=0.9 beta2=0.99 epsilon=1e-08 weight_decay=0.01");
}

}  // namespace
}  // namespace ringtail
