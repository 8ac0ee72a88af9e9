#include "optim/muon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/fast_bf16_products.h"
#include "tests/optim/reference_run.h"
#include "tests/optim/test_arena.h"

namespace ringtail {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kFirstRate = 0.5;
constexpr double kTolerance = 2e-5;  // for weights around 1 that move by a tenth

struct Case {
  const char* name;
  const char* config;
  double momentum, trust;
  double decay, vector_decay;
};

class MuonReferenceTest : public testing::TestWithParam<Case> {};

TEST_P(MuonReferenceTest, FollowsTheFormulaInDoublePrecision) {
  const Case& c = GetParam();
  ExpectFollowsReference(c.config, kFirstRate, kTolerance,
                         [&](const ReferenceStep& s, ReferenceTensor* tensor) {
                           tensor->MuonStep(s.parameter.grad(), s.grad_scale, s.rate, c.momentum,
                                            c.trust, s.is_vector() ? c.vector_decay : c.decay,
                                            !s.is_vector(), s.parameter.spec.shape[0]);
                         });
}

INSTANTIATE_TEST_SUITE_P(
    Rules, MuonReferenceTest,
    testing::Values(Case{"Default", "muon { matrices: F32 }", 0.9, 0.02, 5e-4, 0},
                    Case{"NoMomentum",
                         "muon { momentum: 0 trust: 0.2 matrices: F32 } weight_decay: 0", 0, 0.2, 0,
                         0},
                    Case{"VectorsDecayButAreNoMatrices",
                         "muon { trust: 0.2 matrices: F32 } weight_decay: 0.3 decay_vectors: true",
                         0.9, 0.2, 0.3, 0.3}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(MuonTest, AStepIsTheSameFractionOfEveryWeightTensorForAnyGradient) {
  // Biases and batch norm move by lr u: v = g, u = g + 0.9 v.
  ExpectStepsAreParts("muon { trust: 0.01 } weight_decay: 0", 0.01, 1.9);
}

TEST(MuonTest, WeakDirectionsMoveAsFarAsStrongOnes) {
  // Two orthogonal rows of the convolution, one a hundred times as long as the other.
  const auto arena = MakeTestArena();
  const Parameter& p = *arena->FindParameter("conv.weight");
  const int64_t columns = p.elements / p.spec.shape[0];
  p.grad()[0] = 1;
  p.grad()[columns + 1] = 0.01F;
  const std::vector<float> before = Copy(p.value());
  MakeOptimizer("muon {} weight_decay: 0", arena.get())->Step(0, 0.1, 1);
  const float loud = before[0] - p.value()[0];
  const float faint = before[columns + 1] - p.value()[columns + 1];
  EXPECT_GT(loud, 0);
  EXPECT_GT(faint, 0.5F * loud);
  EXPECT_LT(faint, 2 * loud);
}

// How far a step moves each parameter, with weights `size` times as large.
std::vector<double> Distances(const char* config, float size) {
  const auto arena = MakeTestArena();
  for (float& w : arena->values()) w *= size;
  DrawGradients(0, arena.get());
  const std::vector<float> before = Copy(arena->values());
  MakeOptimizer(config, arena.get())->Step(0, 0.5, 1);
  std::vector<double> distances;
  for (const Parameter& p : arena->parameters()) {
    double sum = 0;
    for (int64_t i = 0; i < p.elements; ++i) {
      const double moved = p.value()[i] - before[p.offset + i];
      sum += moved * moved;
    }
    distances.push_back(std::sqrt(sum));
  }
  return distances;
}

TEST(MuonTest, TheHeadsStepsAreOfOneSizeFromItsStart) {
  constexpr double kRows = 300, kTolerance = 1e-3;
  constexpr const char* kStart = "muon { head_norm: START } weight_decay: 0";
  const auto arena = MakeTestArena();
  const std::vector<double> once = Distances(kStart, 1), larger = Distances(kStart, 4);
  const std::vector<double> current = Distances("muon {} weight_decay: 0", 4);
  for (size_t i = 0; i < once.size(); ++i) {
    const ParameterSpec& spec = arena->parameters()[i].spec;
    if (spec.kind == ParameterKind::kLinearWeight) {
      const double expected = 0.5 * 0.02 * std::sqrt(kRows / 3);
      EXPECT_NEAR(once[i], expected, kTolerance * expected);
      EXPECT_NEAR(larger[i], expected, kTolerance * expected);
      EXPECT_GT(current[i], 10 * expected);
    } else {
      EXPECT_NEAR(larger[i], current[i], kTolerance * current[i]) << spec.name;
    }
  }
}

TEST(MuonTest, BiasesAndBatchNormHaveARateOfTheirOwn) {
  const auto arena = MakeTestArena();
  const std::vector<double> once = Distances("muon {}", 1);
  const std::vector<double> tenth = Distances("muon { vector_rate: 0.1 }", 1);
  for (size_t i = 0; i < once.size(); ++i) {
    const ParameterSpec& spec = arena->parameters()[i].spec;
    const double expected = spec.kind == ParameterKind::kVector ? 0.1 * once[i] : once[i];
    EXPECT_NEAR(tenth[i], expected, 1e-4 * once[i]) << spec.name;
  }
}

TEST(MuonTest, ATensorOfZerosMovesByTheRate) {
  const auto arena = MakeTestArena();
  std::ranges::fill(arena->values(), 0.0F);
  const Parameter& p = *arena->FindParameter("conv.weight");
  p.grad()[0] = 7;
  MakeOptimizer("muon {}", arena.get())->Step(0, 0.5, 1);
  EXPECT_LT(p.value()[0], -0.5 * 0.66);
  EXPECT_GT(p.value()[0], -0.5 * 1.34);
}

// Vectors have nothing worth it; of matrices the work grows with all three dimensions.
TEST(MuonTest, PreparesMatrices) {
  const auto arena = MakeTestArena();
  const auto optimizer = MakeOptimizer("muon {}", arena.get());
  const std::vector<double> work = optimizer->PreparableWork();
  PreparedStep prepared;
  prepared.Begin(1);
  std::vector<size_t> all(work.size());
  std::iota(all.begin(), all.end(), size_t{0});
  optimizer->Prepare(all, &prepared);
  for (const size_t p : all) {
    const Parameter& parameter = arena->parameters()[p];
    const bool matrix = parameter.spec.kind != ParameterKind::kVector;
    EXPECT_EQ(work[p] > 0, matrix) << parameter.spec.name;
    EXPECT_EQ(prepared.Of(p).size(), matrix ? parameter.elements : 0) << parameter.spec.name;
  }
  prepared.Begin(1);
  for (const size_t p : all) EXPECT_TRUE(prepared.Of(p).empty());
}

TEST(MuonTest, DescribesItself) {
  const auto arena = MakeTestArena();
  EXPECT_EQ(MakeOptimizer("muon { matrices: F32 }", arena.get())->Describe(),
            "Muon momentum=0.9 trust=0.02 weight_decay=0.0005");
  const std::string rounded = FastBf16Products() ? " matrices=bf16" : "";
  EXPECT_EQ(MakeOptimizer("muon { vector_rate: 0.1 }", arena.get())->Describe(),
            "Muon momentum=0.9 trust=0.02" + rounded + " vector_rate=0.1 weight_decay=0.0005");
}

// As where another rank is slow: then to the bits of f32, wherever bfloat16 is fast.
TEST(MuonTest, RoundsNothingWhereItIsTold) {
  const auto stepped = [](const char* config, const OptimizerOptions& options) {
    const auto arena = MakeTestArena();
    DrawGradients(0, arena.get());
    const auto optimizer = Optimizer::Create(ParseOptim(config), arena.get(), options).value();
    EXPECT_THAT(optimizer->Describe(), Not(HasSubstr("bf16")));
    optimizer->Step(0, 0.5, 1);
    return Copy(arena->values());
  };
  EXPECT_EQ(stepped("muon {}", {.bf16_products = false}), stepped("muon { matrices: F32 }", {}));
  EXPECT_TRUE(Optimizer::TakesBf16Products(ParseOptim("muon {}")));
  EXPECT_FALSE(Optimizer::TakesBf16Products(ParseOptim("muon { matrices: F32 }")));
  EXPECT_FALSE(Optimizer::TakesBf16Products(ParseOptim("")));
}

// Where bfloat16 is fast: almost the step of f32, and not quite.
TEST(MuonTest, RoundsMatricesWhereThatIsFast) {
  const auto moved = [](const char* config) {
    const auto arena = MakeTestArena();
    DrawGradients(0, arena.get());
    const std::vector<float> before = Copy(arena->values());
    MakeOptimizer(config, arena.get())->Step(0, 0.5, 1);
    std::vector<float> steps = Copy(arena->values());
    for (size_t i = 0; i < steps.size(); ++i) steps[i] -= before[i];
    return steps;
  };
  const std::vector<float> exact = moved("muon { matrices: F32 } weight_decay: 0");
  const std::vector<float> fastest = moved("muon {} weight_decay: 0");
  double squares = 0, wrong = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    squares += exact[i] * exact[i];
    wrong += (fastest[i] - exact[i]) * (fastest[i] - exact[i]);
  }
  EXPECT_LT(std::sqrt(wrong / squares), 0.02);
  EXPECT_EQ(wrong > 0, FastBf16Products());
}

}  // namespace
}  // namespace ringtail
