// Laws that every rule obeys. A new rule adds a row to kRules.
#include "optim/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/parallel_for.h"
#include "tests/optim/bad_config.h"
#include "tests/optim/test_arena.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

const char* const kRules[] = {
    "sgd {}",
    "sgd { momentum: 0 }",
    "sgd { nesterov: true }",
    "sgd { decoupled_decay: true }",
    "adam {}",
    "adamw {}",
    "lars {}",
    "lars { momentum: 0 trust: 1 }",
    "lamb {}",
    "lamb { max_weight_norm: 2 }",
    "muon {}",
    "muon { momentum: 0 trust: 0.5 }",
};
constexpr int kSteps = 4;

void RunSteps(Optimizer* optimizer, ParameterArena* arena, int64_t from, int64_t to) {
  for (int64_t step = from; step < to; ++step) {
    DrawGradients(step, arena);
    optimizer->Step(step, 0.05, 0.5);
  }
}

std::vector<std::vector<float>> CopyState(Optimizer* optimizer) {
  std::vector<std::vector<float>> copies;
  for (const auto& block : optimizer->state()) copies.push_back(Copy(block.values));
  return copies;
}

class EveryRuleTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Rules, EveryRuleTest, testing::ValuesIn(kRules));

TEST_P(EveryRuleTest, DoesNotChangeGradientsAndGaps) {
  const auto arena = MakeTestArena();
  const auto optimizer = MakeOptimizer(GetParam(), arena.get());
  RunSteps(optimizer.get(), arena.get(), 0, 1);
  const std::vector<float> grads = Copy(arena->grads());
  optimizer->Step(1, 0.05, 0.5);
  EXPECT_EQ(Copy(arena->grads()), grads);
  const Parameter& bias = *arena->FindParameter("norm.bias");
  const std::span<float> gap = arena->values().subspan(bias.offset + bias.elements, 9);
  EXPECT_THAT(gap, testing::Each(0.0F));
}

TEST_P(EveryRuleTest, DecaysVectorsOnlyWithDecayVectors) {
  // With a gradient of zero, the first step is decay alone, if any. The rate is so small that even
  // a rule that normalises its steps does not move a weight past zero.
  constexpr double kRate = 1e-3;
  for (const bool decay_vectors : {false, true}) {
    const auto arena = MakeTestArena();
    const auto optimizer = MakeOptimizer(std::string(GetParam()) + " weight_decay: 0.1" +
                                             (decay_vectors ? " decay_vectors: true" : ""),
                                         arena.get());
    const std::vector<float> start = Copy(arena->values());
    optimizer->Step(0, kRate, 1);
    for (const Parameter& p : arena->parameters()) {
      const bool moved = Copy(p.value()) != Copy(std::span(start).subspan(p.offset, p.elements));
      EXPECT_EQ(moved, decay_vectors || p.spec.kind != ParameterKind::kVector) << p.spec.name;
      EXPECT_LE(std::abs(p.value()[0]), std::abs(start[p.offset])) << p.spec.name;
    }
  }
}

TEST_P(EveryRuleTest, ContinuesFromSavedStateWithTheSameBits) {
  const auto arena = MakeTestArena();
  const auto optimizer = MakeOptimizer(GetParam(), arena.get());
  RunSteps(optimizer.get(), arena.get(), 0, kSteps);
  // Save, by name, and restore into a new optimizer over a new arena.
  const auto restored_arena = MakeTestArena();
  const auto restored = MakeOptimizer(GetParam(), restored_arena.get());
  std::ranges::copy(arena->values(), restored_arena->values().begin());
  const auto saved = optimizer->state(), target = restored->state();
  ASSERT_EQ(saved.size(), target.size());
  for (size_t i = 0; i < saved.size(); ++i) {
    ASSERT_EQ(saved[i].name, target[i].name);
    std::ranges::copy(saved[i].values, target[i].values.begin());
  }
  RunSteps(optimizer.get(), arena.get(), kSteps, 2 * kSteps);
  RunSteps(restored.get(), restored_arena.get(), kSteps, 2 * kSteps);
  EXPECT_EQ(Copy(restored_arena->values()), Copy(arena->values()));
}

TEST_P(EveryRuleTest, GivesTheSameBitsForAnyNumberOfThreads) {
  const int threads = NumComputeThreads();
  std::vector<std::vector<float>> results;
  for (const int n : {1, 2, 3, 5}) {
    SetNumComputeThreads(n);
    const auto arena = MakeTestArena();
    RunSteps(MakeOptimizer(GetParam(), arena.get()).get(), arena.get(), 0, kSteps);
    results.push_back(Copy(arena->values()));
  }
  SetNumComputeThreads(threads);
  EXPECT_NE(results[0], Copy(MakeTestArena()->values()));
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

TEST_P(EveryRuleTest, AppliesGradScaleAsIfGradientsWereScaled) {
  const auto arena = MakeTestArena(), scaled_arena = MakeTestArena();
  DrawGradients(0, arena.get());
  DrawGradients(0, scaled_arena.get());
  for (float& g : scaled_arena->grads()) g *= 0.25F;
  MakeOptimizer(GetParam(), arena.get())->Step(0, 0.05, 0.25);
  MakeOptimizer(GetParam(), scaled_arena.get())->Step(0, 0.05, 1);
  EXPECT_EQ(Copy(arena->values()), Copy(scaled_arena->values()));
}

// Whatever is prepared, in whichever order and by however many threads: nothing but the step
// changes weights and state, and then to the bits of a step without preparation.
TEST_P(EveryRuleTest, APreparedStepHasTheSameBits) {
  const int threads = NumComputeThreads();
  const auto plain = MakeTestArena();
  const auto plain_optimizer = MakeOptimizer(GetParam(), plain.get());
  RunSteps(plain_optimizer.get(), plain.get(), 0, kSteps);
  const size_t parameters = plain->parameters().size();
  for (const int n : {1, 3}) {
    SetNumComputeThreads(n);
    const auto arena = MakeTestArena();
    const auto optimizer = MakeOptimizer(GetParam(), arena.get());
    PreparedStep prepared;
    for (int64_t step = 0; step < kSteps; ++step) {
      const std::vector<float> weights = Copy(arena->values());
      const std::vector<std::vector<float>> state = CopyState(optimizer.get());
      // Of a step that is left out: other gradients and another scale.
      DrawGradients(step + kSteps, arena.get());
      prepared.Begin(0.25);
      for (size_t p = 0; p < parameters; ++p) optimizer->Prepare(std::array{p}, &prepared);
      DrawGradients(step, arena.get());
      prepared.Begin(0.5);
      for (size_t p = parameters; p-- > static_cast<size_t>(step % 2);) {
        optimizer->Prepare(std::array{p}, &prepared);
      }
      EXPECT_EQ(Copy(arena->values()), weights);
      EXPECT_EQ(CopyState(optimizer.get()), state);
      optimizer->StepPrepared(step, 0.05, &prepared);
    }
    EXPECT_EQ(Copy(arena->values()), Copy(plain->values())) << n << " threads";
    EXPECT_EQ(CopyState(optimizer.get()), CopyState(plain_optimizer.get())) << n << " threads";
  }
  SetNumComputeThreads(threads);
}

// What a step prepared is no part of the next one.
TEST_P(EveryRuleTest, AStepForgetsWhatWasPrepared) {
  const auto plain = MakeTestArena(), arena = MakeTestArena();
  const auto plain_optimizer = MakeOptimizer(GetParam(), plain.get());
  const auto optimizer = MakeOptimizer(GetParam(), arena.get());
  RunSteps(plain_optimizer.get(), plain.get(), 0, 2);
  PreparedStep prepared;
  prepared.Begin(0.5);
  DrawGradients(0, arena.get());
  optimizer->Prepare(std::array<size_t, 1>{0}, &prepared);
  optimizer->StepPrepared(0, 0.05, &prepared);
  DrawGradients(1, arena.get());
  optimizer->StepPrepared(1, 0.05, &prepared);
  EXPECT_EQ(Copy(arena->values()), Copy(plain->values()));
}

// A parameter whose gradient has been zero so far, and a run that starts in the middle, use the
// same counters.
TEST_P(EveryRuleTest, CountersDependOnTheStepAlone) {
  constexpr int64_t kLate = 7;
  const auto begin = [](ParameterArena* arena) {
    return MakeOptimizer(std::string(GetParam()) + " weight_decay: 0", arena);
  };
  const auto waited = MakeTestArena(), joined = MakeTestArena();
  const auto optimizer = begin(waited.get());
  std::ranges::fill(waited->grads(), 0.0F);
  for (int64_t step = 0; step < kLate; ++step) optimizer->Step(step, 0.05, 0.5);
  ASSERT_EQ(Copy(waited->values()), Copy(joined->values()));
  RunSteps(optimizer.get(), waited.get(), kLate, kLate + 1);
  RunSteps(begin(joined.get()).get(), joined.get(), kLate, kLate + 1);
  EXPECT_EQ(Copy(waited->values()), Copy(joined->values()));
}

// One parameter begins at step kLate: it is as in a run that begins there, the others as in one
// that began at step 0.
TEST_P(EveryRuleTest, AParameterCountsFromItsFirstStep) {
  constexpr int64_t kLate = 1000;
  constexpr size_t kThawed = 1;  // a vector, whose update no norm of others is part of
  const auto fresh = MakeTestArena(), old = MakeTestArena(), mixed = MakeTestArena();
  const auto fresh_optimizer = MakeOptimizer(GetParam(), fresh.get());
  const auto old_optimizer = MakeOptimizer(GetParam(), old.get());
  const auto mixed_optimizer = MakeOptimizer(GetParam(), mixed.get());
  mixed_optimizer->set_first_steps({0, kLate, 0});
  for (int64_t step = 0; step < kSteps; ++step) {
    for (ParameterArena* const arena : {fresh.get(), old.get(), mixed.get()}) {
      DrawGradients(step, arena);
    }
    fresh_optimizer->Step(step, 0.05, 0.5);
    old_optimizer->Step(kLate + step, 0.05, 0.5);
    mixed_optimizer->Step(kLate + step, 0.05, 0.5);
  }
  for (size_t p = 0; p < mixed->parameters().size(); ++p) {
    const ParameterArena& as = p == kThawed ? *fresh : *old;
    EXPECT_EQ(Copy(mixed->parameters()[p].value()), Copy(as.parameters()[p].value())) << p;
  }
}

TEST(OptimizerTest, EveryRuleOfTheConfigHasARow) {
  const auto* rules = OptimConfig::descriptor()->FindOneofByName("rule");
  for (int i = 0; i < rules->field_count(); ++i) {
    const std::string name = rules->field(i)->name();
    EXPECT_THAT(kRules, testing::Contains(testing::StartsWith(name + " {"))) << name;
  }
}

TEST_P(EveryRuleTest, WorksOnAnEmptyArena) {
  const auto arena = ParameterArena::Create({}, {});
  const auto optimizer = MakeOptimizer(GetParam(), arena->get());
  optimizer->Step(0, 0.1, 1);
  for (const auto& block : optimizer->state()) EXPECT_TRUE(block.values.empty());
}

TEST(OptimizerTest, UsesSgdByDefault) {
  const auto arena = MakeTestArena();
  EXPECT_THAT(MakeOptimizer("", arena.get())->Describe(), HasSubstr("SGD"));
}

class OptimizerValidationTest : public testing::TestWithParam<BadConfig> {};

TEST_P(OptimizerValidationTest, PointsAtTheField) { ExpectRefused(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Fields, OptimizerValidationTest,
    testing::Values(
        BadConfig{"weight_decay: -1", "2:", "weight_decay is -1; it must be finite and at least 0"},
        BadConfig{"weight_decay: nan", "2:", "weight_decay is nan"},
        BadConfig{"weight_decay: 1e39", "2:", "weight_decay is 1e+39"},
        BadConfig{"\nclip_norm: -0.5", "3:", "clip_norm is -0.5"},
        BadConfig{"clip_norm: inf", "2:", "clip_norm is inf"},
        BadConfig{"ema_decay: 1", "2:", "ema_decay is 1; it must be at least 0 and less than 1"},
        BadConfig{"sgd {\n  momentum: 1\n}", "3:", "momentum is 1; it must be"},
        BadConfig{"sgd { momentum: -0.1 }", "2:", "momentum is -0.1"},
        BadConfig{"sgd { momentum: 0 nesterov: true }", "2:", "nesterov needs momentum > 0"},
        BadConfig{"adam { beta1: 1 }", "2:", "beta1 is 1"},
        BadConfig{"adamw {\n\n  beta2: 1.5\n}", "4:", "beta2 is 1.5"},
        BadConfig{"adam { epsilon: 0 }",
                  "2:", "epsilon is 0; it must be finite and greater than 0"},
        BadConfig{"adam { epsilon: 1e-50 }", "2:", "epsilon is 1e-50"},
        BadConfig{"lars { momentum: 1 }", "2:", "momentum is 1; it must be"},
        BadConfig{"lars {\n  trust: 0\n}", "3:", "trust is 0; it must be finite and greater"},
        BadConfig{"lars { epsilon: -1 }", "2:", "epsilon is -1; it must be finite and at least 0"},
        BadConfig{"lamb { beta1: 1 }", "2:", "beta1 is 1; it must be"},
        BadConfig{"lamb { beta2: -0.1 }", "2:", "beta2 is -0.1; it must be"},
        BadConfig{"lamb {\n\n  epsilon: 0\n}", "4:", "epsilon is 0; it must be finite and greater"},
        BadConfig{"lamb { max_weight_norm: inf }", "2:", "max_weight_norm is inf"},
        BadConfig{"muon { momentum: 1 }", "2:", "momentum is 1; it must be"},
        BadConfig{"muon {\n  trust: -1\n}", "3:", "trust is -1; it must be finite and greater"}));

TEST(OptimizerValidationTest, AcceptsTheEdgesOfTheRanges) {
  for (const char* text :
       {"", "weight_decay: 0 clip_norm: 0 ema_decay: 0", "ema_decay: 0.9999", "sgd { momentum: 0 }",
        "sgd { momentum: 0.999 nesterov: true }", "adam { beta1: 0 beta2: 0 }",
        "lars { momentum: 0 epsilon: 0 }", "lamb { beta1: 0 beta2: 0 max_weight_norm: 0 }",
        "muon { momentum: 0 }"}) {
    EXPECT_EQ(ValidationMessage(text), "") << text;
  }
}

TEST(OptimizerValidationTest, NamesTheFieldWithoutASource) {
  const auto arena = MakeTestArena();
  const auto result = Optimizer::Create(ParseOptim("sgd { momentum: 2 }"), arena.get());
  EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(result.status().message(), HasSubstr("optim.sgd.momentum: momentum is 2"));
}

}  // namespace
}  // namespace ringtail
