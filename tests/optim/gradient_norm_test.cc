#include <gtest/gtest.h>

#include <cmath>

#include "core/parallel_for.h"
#include "optim/gradient_norm.h"
#include "tests/optim/test_arena.h"

namespace ringtail {
namespace {

TEST(GradientNormTest, IsTheRootOfTheSumOfSquares) {
  const auto arena = MakeTestArena();
  DrawGradients(0, arena.get());
  double sum = 0;
  for (const float g : arena->grads()) sum += static_cast<double>(g) * g;
  EXPECT_NEAR(GradientNorm(*arena, 1), std::sqrt(sum), 1e-9 * std::sqrt(sum));
  EXPECT_NEAR(GradientNorm(*arena, 0.125), 0.125 * std::sqrt(sum), 1e-9 * std::sqrt(sum));
}

TEST(GradientNormTest, IsExactWhereFloatsWouldOverflow) {
  const auto arena = MakeTestArena();
  arena->grads()[0] = 3e30F;
  arena->grads()[arena->grads().size() - 20] = 4e30F;
  EXPECT_NEAR(GradientNorm(*arena, 1), 5e30, 1e24);
}

TEST(GradientNormTest, GivesTheSameBitsForAnyNumberOfThreads) {
  const auto arena = MakeTestArena();
  DrawGradients(0, arena.get());
  const int threads = NumComputeThreads();
  SetNumComputeThreads(1);
  const double norm = GradientNorm(*arena, 1);
  for (const int n : {2, 3, 5}) {
    SetNumComputeThreads(n);
    EXPECT_EQ(GradientNorm(*arena, 1), norm);
  }
  SetNumComputeThreads(threads);
}

TEST(GradientNormTest, ShowsNanAndInfinity) {
  const auto arena = MakeTestArena();
  arena->grads()[5] = std::nanf("");
  EXPECT_TRUE(std::isnan(GradientNorm(*arena, 1)));
  arena->grads()[5] = INFINITY;
  EXPECT_TRUE(std::isinf(GradientNorm(*arena, 1)));
}

TEST(ClipFactorTest, ReducesTheNormToTheBoundAndNeverRaisesIt) {
  EXPECT_EQ(ClipFactor(10, 2.5), 0.25);
  EXPECT_EQ(ClipFactor(2.5, 2.5), 1);
  EXPECT_EQ(ClipFactor(1, 2.5), 1);
  EXPECT_EQ(ClipFactor(0, 2.5), 1);
  EXPECT_EQ(ClipFactor(10, 0), 1) << "0 means off";
}

}  // namespace
}  // namespace ringtail
