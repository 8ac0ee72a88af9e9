#include "optim/noise_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "core/random.h"

namespace ringtail {
namespace {

constexpr int64_t kDimensions = 500;

// Ranks with mean gradients g_k of b_k images each: G + noise, of E |noise|^2 = S / b_k.
class SyntheticRanks {
 public:
  SyntheticRanks(std::vector<int64_t> batches, double gradient, double noise)
      : batches_(std::move(batches)), gradient_(gradient), noise_(noise) {}

  NoiseScale::Step Draw() {
    const auto total =
        static_cast<double>(std::accumulate(batches_.begin(), batches_.end(), int64_t{0}));
    NoiseScale::Step step{.ranks = static_cast<int64_t>(batches_.size()), .batch = total};
    std::vector<double> mean(kDimensions);
    for (const int64_t b : batches_) {
      const auto images = static_cast<double>(b);
      const double deviation = std::sqrt(noise_ / images / kDimensions);
      double norm = 0;
      for (double& m : mean) {
        const double g = std::sqrt(gradient_ / kDimensions) + deviation * rng_.Normal();
        norm += g * g;
        m += g * images / total;
      }
      step.rank_squares += images * norm;
    }
    for (const double m : mean) step.squares += m * m;
    return step;
  }

 private:
  const std::vector<int64_t> batches_;
  const double gradient_, noise_;  // |G|^2, S
  Rng rng_{RngKey(1).With(kTestStream).With("noise scale")};
};

struct Case {
  const char* name;
  std::vector<int64_t> batches;
  double gradient, noise;
};

class KnownNoiseTest : public testing::TestWithParam<Case> {};

// The mean of many estimates, each from one step, shows the bias.
TEST_P(KnownNoiseTest, EstimatesHaveNoBias) {
  constexpr int kTrials = 2000;
  const Case& c = GetParam();
  SyntheticRanks ranks(c.batches, c.gradient, c.noise);
  double gradient = 0, noise = 0, squares = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    NoiseScale scale;
    scale.Add(ranks.Draw());
    gradient += scale.gradient() / kTrials;
    noise += scale.noise() / kTrials;
    squares += scale.gradient() * scale.gradient() / kTrials;
  }
  EXPECT_NEAR(noise, c.noise, 0.01 * c.noise);
  const double error = std::sqrt((squares - gradient * gradient) / kTrials);
  EXPECT_NEAR(gradient, c.gradient, 5 * error);
  EXPECT_LT(error, 0.05 * c.gradient) << "or the line above would say nothing";
}

TEST_P(KnownNoiseTest, TheAverageFindsTheNoiseScale) {
  const Case& c = GetParam();
  SyntheticRanks ranks(c.batches, c.gradient, c.noise);
  NoiseScale scale;
  for (int step = 0; step < 1000; ++step) scale.Add(ranks.Draw());
  EXPECT_NEAR(*scale.Images(), c.noise / c.gradient, 0.3 * c.noise / c.gradient);
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, KnownNoiseTest,
    testing::Values(Case{"TwoRanks", {32, 32}, 1, 100},
                    Case{"EightRanks", {32, 32, 32, 32, 32, 32, 32, 32}, 0.5, 400},
                    Case{"UnevenRanks", {5, 2, 1, 56}, 2, 60},
                    Case{"MostlySignal", {64, 64}, 10, 5}),
    [](const auto& info) { return std::string(info.param.name); });

// |G|^2 = (B |g_B|^2 - b |g_b|^2) / (B - b) and S = (|g_b|^2 - |g_B|^2) / (1/b - 1/B).
TEST(NoiseScaleTest, EqualRanksGiveThePapersEquations) {
  constexpr double b = 16, small = 7.5, big = 3.25;
  constexpr int64_t kRanks = 4;
  constexpr double B = kRanks * b;
  NoiseScale scale;
  scale.Add({.ranks = kRanks, .batch = B, .rank_squares = B * small, .squares = big});
  EXPECT_NEAR(scale.gradient(), (B * big - b * small) / (B - b), 1e-12);
  EXPECT_NEAR(scale.noise(), (small - big) / (1 / b - 1 / B), 1e-12);
}

TEST(NoiseScaleTest, WithoutNoiseItIsZero) {
  NoiseScale scale;
  for (int64_t step = 0; step < NoiseScale::kMinSteps; ++step) {
    EXPECT_FALSE(scale.Images()) << "after " << step << " steps";
    EXPECT_EQ(scale.Describe(), "");
    scale.Add({.ranks = 2, .batch = 8, .rank_squares = 8 * 3, .squares = 3});
  }
  EXPECT_EQ(*scale.Images(), 0);
  EXPECT_NEAR(scale.gradient(), 3, 1e-12);
}

TEST(NoiseScaleTest, HasNoEstimateWhereNoiseHidesTheGradient) {
  NoiseScale scale;
  // Orthogonal gradients of two ranks: |g|^2 is explained by noise alone.
  for (int step = 0; step < 50; ++step) {
    scale.Add({.ranks = 2, .batch = 2, .rank_squares = 2, .squares = 0.5});
  }
  EXPECT_FALSE(scale.Images());
  EXPECT_EQ(scale.Describe(), "");
}

TEST(NoiseScaleTest, FollowsARunWhoseNoiseScaleGrows) {
  NoiseScale scale;
  SyntheticRanks early({32, 32, 32, 32}, 1, 50), late({32, 32, 32, 32}, 1, 500);
  for (int step = 0; step < 500; ++step) scale.Add(early.Draw());
  EXPECT_NEAR(*scale.Images(), 50, 10);
  for (int step = 0; step < 1000; ++step) scale.Add(late.Draw());
  EXPECT_NEAR(*scale.Images(), 500, 150);
}

TEST(NoiseScaleTest, DescribesItself) {
  NoiseScale scale;
  constexpr double kGradient = 0.5, kNoise = 370, kBatch = 128;
  for (int64_t step = 0; step < NoiseScale::kMinSteps; ++step) {
    scale.Add({.ranks = 2,
               .batch = kBatch,
               .rank_squares = kBatch * kGradient + 2 * kNoise,
               .squares = kGradient + kNoise / kBatch});
  }
  EXPECT_EQ(scale.Describe(),
            "noise scale 740: beyond a global batch of about 740 more ranks stop helping");
}

}  // namespace
}  // namespace ringtail
