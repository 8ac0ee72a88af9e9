#include "optim/lamb.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/optim/reference_run.h"
#include "tests/optim/test_arena.h"

namespace ringtail {
namespace {

constexpr int kSteps = 5;
constexpr double kFirstRate = 0.05, kBeta1 = 0.8, kBeta2 = 0.95;
constexpr double kTolerance = 5e-6;  // a few roundings of f32 on numbers around 1
constexpr double kNoBound = std::numeric_limits<double>::infinity();

struct Case {
  const char* name;
  const char* config;
  double epsilon, max_weight_norm;
  double decay, vector_decay;
};

class LambReferenceTest : public testing::TestWithParam<Case> {};

TEST_P(LambReferenceTest, FollowsTheFormulaInDoublePrecision) {
  const Case& c = GetParam();
  ExpectFollowsReference(
      c.config, kFirstRate, kTolerance, [&](const ReferenceStep& s, ReferenceTensor* tensor) {
        tensor->LambStep(s.parameter.grad(), s.grad_scale, s.step, s.rate, kBeta1, kBeta2,
                         c.epsilon, c.max_weight_norm, s.is_vector() ? c.vector_decay : c.decay,
                         !s.is_vector());
      });
}

INSTANTIATE_TEST_SUITE_P(
    Rules, LambReferenceTest,
    testing::Values(
        Case{"NoDecay", "lamb { beta1: 0.8 beta2: 0.95 epsilon: 0.1 } weight_decay: 0", 0.1,
             kNoBound, 0, 0},
        Case{"Decay", "lamb { beta1: 0.8 beta2: 0.95 epsilon: 0.1 } weight_decay: 0.3", 0.1,
             kNoBound, 0.3, 0},
        Case{"Bound",
             "lamb { beta1: 0.8 beta2: 0.95 epsilon: 0.1 max_weight_norm: 5 } weight_decay: 0.3",
             0.1, 5, 0.3, 0},
        Case{"VectorsDecayButDoNotAdapt",
             "lamb { beta1: 0.8 beta2: 0.95 epsilon: 0.1 } weight_decay: 0.3 decay_vectors: true",
             0.1, kNoBound, 0.3, 0.3}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(LambTest, ConstantGradientMovesEveryTensorByTheRateTimesItsNorm) {
  // m / (1 - b1^t) = g and v / (1 - b2^t) = g^2 at every step, so u = sign(g), ||u|| = sqrt(n), and
  // every weight moves by lr ||w|| / sqrt(n); a bias by lr.
  constexpr double kRate = 0.01;
  const auto arena = MakeTestArena();
  const auto optimizer = MakeOptimizer("lamb {} weight_decay: 0", arena.get());
  for (const Parameter& p : arena->parameters()) {
    for (int64_t i = 0; i < p.elements; ++i) p.grad()[i] = i % 2 == 0 ? 0.5F : -3.0F;
  }
  for (int64_t step = 0; step < kSteps; ++step) {
    const std::vector<float> start = Copy(arena->values());
    optimizer->Step(step, kRate, 1);
    for (const Parameter& p : arena->parameters()) {
      double squares = 0;
      for (int64_t i = 0; i < p.elements; ++i) squares += std::pow(start[p.offset + i], 2);
      const bool vector = p.spec.kind == ParameterKind::kVector;
      const double norms = std::sqrt(squares / static_cast<double>(p.elements));
      const double moved = kRate * (vector ? 1 : norms);
      for (int64_t i = 0; i < p.elements; ++i) {
        ASSERT_NEAR(p.value()[i], start[p.offset + i] + (i % 2 == 0 ? -moved : moved), 2e-6)
            << p.spec.name << " " << step;
      }
    }
  }
}

TEST(LambTest, StaysAtRestWithoutAGradient) {
  const auto arena = MakeTestArena();
  const std::vector<float> start = Copy(arena->values());
  const auto optimizer = MakeOptimizer("lamb {} weight_decay: 0", arena.get());
  for (int64_t step = 0; step < kSteps; ++step) optimizer->Step(step, 0.1, 1);
  EXPECT_EQ(Copy(arena->values()), start);
}

TEST(LambTest, DescribesItself) {
  const auto arena = MakeTestArena();
  EXPECT_EQ(MakeOptimizer("lamb {} weight_decay: 0.01", arena.get())->Describe(),
            "LAMB beta1=0.9 beta2=0.999 epsilon=1e-06 weight_decay=0.01");
}

}  // namespace
}  // namespace ringtail
