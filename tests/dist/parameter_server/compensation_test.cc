#include "dist/parameter_server/compensation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/random.h"

namespace ringtail {
namespace {

using testing::ElementsAre;

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

std::vector<float> Delayed(const std::vector<float>& gradient, int64_t images,
                           const std::vector<float>& then, const std::vector<float>& now,
                           double lambda, double limit = kNoLimit) {
  std::vector<float> out(gradient.size());
  CompensateDelay(gradient, images, {.then = then, .now = now}, lambda, limit, out);
  return out;
}

// The example of the header: with one `then` for all workers, as MXNet's DCASGD has it, the third
// push, which is not late, is changed.
TEST(CompensationTest, ThreePushesOfTwoWorkersAsWorkedByHand) {
  constexpr float kRate = 0.5F;
  float w = 1, then_of_all = 1;
  std::vector<float> ours, by_parameter;
  const auto push = [&](float gradient, float then) {
    ours = Delayed({gradient}, 1, {then}, {w}, 1);
    by_parameter = Delayed({gradient}, 1, {then_of_all}, {w}, 1);
    then_of_all = w;
    w -= kRate * ours[0];
  };
  push(1, 1);  // A
  EXPECT_THAT(ours, ElementsAre(1));
  EXPECT_THAT(by_parameter, ElementsAre(1));
  EXPECT_EQ(w, 0.5F);
  push(1, 1);  // B
  EXPECT_THAT(ours, ElementsAre(0.5F));
  EXPECT_THAT(by_parameter, ElementsAre(0.5F));
  EXPECT_EQ(w, 0.25F);
  push(2, 0.25F);  // B, which has pulled after its push
  EXPECT_THAT(ours, ElementsAre(2));
  EXPECT_THAT(by_parameter, ElementsAre(1));
  EXPECT_EQ(w, -0.75F);
}

// Sums over images are compensated as their means are.
TEST(CompensationTest, GoesByTheMeanOverImages) {
  EXPECT_THAT(Delayed({2, -4}, 1, {1, 1}, {1.5F, 1.25F}, 0.5), ElementsAre(3, -2));
  EXPECT_THAT(Delayed({8, -16}, 4, {1, 1}, {1.5F, 1.25F}, 0.5), ElementsAre(12, -8));
}

TEST(CompensationTest, NoElementChangesByMoreThanTheLimit) {
  EXPECT_THAT(Delayed({2, 2, 2}, 1, {0, 0, 0}, {100, -100, 0.25F}, 1, 1), ElementsAre(4, 0, 3));
  EXPECT_THAT(Delayed({2, 2}, 1, {0, 0}, {100, -100}, 1, 0.5), ElementsAre(3, 1));
}

// g = 3, MS = 0.5 * 4 + 0.5 * 9 = 6.5; lambda = 2 / sqrt(6.5), f = lambda * 3 * 0.5.
TEST(CompensationTest, AdaptiveAsWorkedByHand) {
  std::vector<float> mean_squares = {4};
  const std::vector<float> gradient = {6}, then = {1}, now = {1.5F};  // of 2 images
  UpdateMeanSquares(gradient, 2, 0.5, mean_squares);
  EXPECT_THAT(mean_squares, ElementsAre(6.5F));
  std::vector<float> out(1);
  CompensateDelayAdaptively(gradient, 2, {.then = then, .now = now}, mean_squares, 2, kNoLimit,
                            out);
  EXPECT_NEAR(out[0], 6 * (1 + 2 / std::sqrt(6.5) * 3 * 0.5), 1e-5);
  CompensateDelayAdaptively(gradient, 2, {.then = then, .now = now}, mean_squares, 2, 0.5, out);
  EXPECT_EQ(out[0], 9);
}

// 1e-7 is within the root: a gradient that was always 0 is divided by 3e-4, not by 1e-7.
TEST(CompensationTest, AdaptiveIsFiniteWhereGradientsWereZero) {
  const std::vector<float> gradient = {1e-3F}, then = {0}, now = {1}, mean_squares = {0};
  std::vector<float> out(1);
  CompensateDelayAdaptively(gradient, 1, {.then = then, .now = now}, mean_squares, 2, kNoLimit,
                            out);
  EXPECT_NEAR(out[0], 1e-3 * (1 + 2 / std::sqrt(1e-7) * 1e-3), 1e-7);
}

TEST(CompensationTest, GapDividesByDistanceInSteps) {
  const std::vector<float> gradient = {6, 6, -6}, then = {1, 1, 1}, now = {1, 1.5F, 0.75F};
  std::vector<float> out(3);
  WeighByGap(gradient, {.then = then, .now = now}, 0.25, out);
  EXPECT_THAT(out, ElementsAre(6, 2, -3));
}

// DANA's server with its look-ahead is SGD with Nesterov's momentum if there is one worker; and
// with several, the weights that it gives out follow x - rate (m v + g), where v is the pushing
// worker's (DANA-Slim of the same paper).
TEST(CompensationTest, DanaGivesOutWhatNesterovWouldSee) {
  constexpr double kRate = 0.125, kMomentum = 0.5;
  constexpr int kWorkers = 3;
  Rng rng(RngKey(1).With(kTestStream));
  std::vector<std::vector<float>> velocities(kWorkers, std::vector<float>(1));
  std::vector<float> weights = {1}, sum = {0}, out(1), given(1);
  std::vector<double> slim(kWorkers);
  double expected = 1;
  for (int i = 0; i < 100; ++i) {
    const auto worker = rng.Below(kWorkers);
    const std::vector<float> gradient = {2 * rng.Normal()};  // of 2 images
    AddToVelocity(gradient, 2, kMomentum, velocities[worker], sum, out);
    weights[0] -= static_cast<float>(kRate) * out[0] / 2;
    LookAhead(weights, sum, kRate * kMomentum, given);
    const double g = gradient[0] / 2;
    slim[worker] = kMomentum * slim[worker] + g;
    expected -= kRate * (kMomentum * slim[worker] + g);
    ASSERT_NEAR(given[0], expected, 1e-5) << i;
  }
}

// Long enough for vectors and what is left of them: each element by itself.
TEST(CompensationTest, EveryElementIsTheFormulas) {
  constexpr size_t kSize = 1031;
  Rng rng(RngKey(2).With(kTestStream));
  std::vector<float> gradient(kSize), then(kSize), now(kSize), squares(kSize), out(kSize);
  for (size_t i = 0; i < kSize; ++i) {
    gradient[i] = rng.Normal();
    then[i] = rng.Normal();
    now[i] = rng.Normal();
    squares[i] = rng.Uniform();
  }
  const WeightsOfPush weights{.then = then, .now = now};
  CompensateDelay(gradient, 4, weights, 0.3, 0.25, out);
  for (size_t i = 0; i < kSize; ++i) {
    const double f = std::clamp(0.3 * gradient[i] / 4 * (now[i] - then[i]), -0.25, 0.25);
    ASSERT_NEAR(out[i], gradient[i] * (1 + f), 1e-5) << i;
  }
  CompensateDelayAdaptively(gradient, 4, weights, squares, 2, 1, out);
  for (size_t i = 0; i < kSize; ++i) {
    const double lambda = 2 / std::sqrt(squares[i] + 1e-7);
    const double f = std::clamp(lambda * gradient[i] / 4 * (now[i] - then[i]), -1.0, 1.0);
    ASSERT_NEAR(out[i], gradient[i] * (1 + f), 1e-4) << i;
  }
  WeighByGap(gradient, weights, 0.5, out);
  for (size_t i = 0; i < kSize; ++i) {
    ASSERT_NEAR(out[i], gradient[i] / (1 + std::abs(now[i] - then[i]) / 0.5), 1e-5) << i;
  }
}

}  // namespace
}  // namespace ringtail
