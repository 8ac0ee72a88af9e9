#include "apps/parameter_server/divergence_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "dist/parameter_server/presets.h"

namespace ringtail {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Verdict = DivergenceGuard::Verdict;

constexpr int64_t kImages = 16;
constexpr double kChance = 0.693;
constexpr DivergenceGuardOptions kOptions{.images = 320, .chance = kChance, .most_not_finite = 3};

// How many of `pushes` with this loss, give or take, brought a verdict.
int VerdictsOf(DivergenceGuard* guard, int pushes, double loss, Verdict verdict) {
  int found = 0;
  for (int i = 0; i < pushes; ++i) {
    const double noisy = loss + 0.2 * std::sin(i);
    found += guard->Add(noisy * kImages, kImages, /*staleness=*/7, /*finite=*/true) == verdict;
  }
  return found;
}

TEST(DivergenceGuardTest, WhatWasLearntIsLost) {
  DivergenceGuard guard(kOptions);
  EXPECT_EQ(VerdictsOf(&guard, 100, kChance, Verdict::kFine), 100);
  EXPECT_EQ(VerdictsOf(&guard, 200, 0.4, Verdict::kFine), 200);
  EXPECT_EQ(guard.report(), "");
  EXPECT_EQ(VerdictsOf(&guard, 500, 0.9, Verdict::kDiverges), 1);
  EXPECT_THAT(guard.report(), StartsWith("the training loss was 0.3"));
  EXPECT_THAT(guard.report(), HasSubstr("7.0 updates old"));
}

// As of 32 workers at a rate for one: the loss is high before anything has been learnt, and falls
// again to that of a network whose output is constant.
TEST(DivergenceGuardTest, WorseThanChanceFromTheStart) {
  DivergenceGuard guard(kOptions);
  EXPECT_EQ(VerdictsOf(&guard, 20, 0.8, Verdict::kFine), 20);
  EXPECT_EQ(VerdictsOf(&guard, 300, 2.4, Verdict::kDiverges), 1);
  EXPECT_THAT(guard.report(), HasSubstr("where chance has 0.693"));
  EXPECT_EQ(VerdictsOf(&guard, 300, kChance, Verdict::kFine), 300);
}

// A run that learns, one that learns nothing, and one that gets worse for a while.
TEST(DivergenceGuardTest, NoFalseAlarms) {
  DivergenceGuard learns(kOptions), nothing(kOptions), worse(kOptions);
  EXPECT_EQ(VerdictsOf(&nothing, 2000, kChance, Verdict::kFine), 2000);
  for (int epoch = 0; epoch < 20; ++epoch) {
    EXPECT_EQ(VerdictsOf(&learns, 100, kChance / (1 + epoch), Verdict::kFine), 100);
    const double loss = epoch == 0 ? 0.95 : epoch % 2 == 0 ? 0.6 : 0.3;
    EXPECT_EQ(VerdictsOf(&worse, 100, loss, Verdict::kFine), 100);
  }
}

TEST(DivergenceGuardTest, GradientsThatAreNotFinite) {
  DivergenceGuard guard(kOptions);
  const auto add = [&](bool finite) {
    const double loss = finite ? 1 : std::numeric_limits<double>::quiet_NaN();
    return guard.Add(loss, kImages, 0, finite);
  };
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(add(false), Verdict::kFine);
    EXPECT_EQ(add(true), Verdict::kFine);
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(add(false), Verdict::kFine);
  EXPECT_EQ(add(false), Verdict::kNotFinite);
  EXPECT_THAT(guard.report(), StartsWith("4 gradients in a row are not finite"));
}

TEST(DivergenceGuardTest, AdviceFitsTheRule) {
  const auto advice = [](AsynchronousConfig::Rule rule, double momentum) {
    return AdviceAgainstDivergence(PublishedRule(rule), momentum);
  };
  EXPECT_THAT(advice(AsynchronousConfig::ASYNCHRONOUS, 0.9), StartsWith("let late gradients"));
  EXPECT_THAT(advice(AsynchronousConfig::ASYNCHRONOUS, 0.9), HasSubstr("momentum"));
  EXPECT_THAT(advice(AsynchronousConfig::SOFT_SYNC, 0), StartsWith("lower optim.learning_rate"));
  EXPECT_THAT(advice(AsynchronousConfig::SOFT_SYNC, 0), HasSubstr("fewer workers"));
  EXPECT_THAT(advice(AsynchronousConfig::SYNCHRONOUS, 0.9), Not(HasSubstr("workers")));
}

}  // namespace
}  // namespace ringtail
