#include "dist/compression/sketches/power_sgd_sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "tests/dist/compression/sparse_gradients.h"

namespace ringtail {
namespace {

// A matrix of the given rank, whose singular values fall.
std::vector<float> LowRank(const GradientShape& shape, int rank, uint64_t seed, float scale = 1) {
  std::vector<float> m(shape.elements());
  for (int c = 0; c < rank; ++c) {
    const auto p = NormalGradient(shape.rows, seed + 2 * c);
    const auto q = NormalGradient(shape.columns, seed + 2 * c + 1);
    for (int64_t i = 0; i < shape.elements(); ++i) {
      m[i] += scale / static_cast<float>(c + 1) * p[i / shape.columns] * q[i % shape.columns];
    }
  }
  return m;
}

std::vector<std::unique_ptr<Sketch>> MakeRanks(int ranks, int r, const GradientShape& shape) {
  std::vector<std::unique_ptr<Sketch>> sketches;
  sketches.reserve(ranks);
  for (int i = 0; i < ranks; ++i) {
    sketches.push_back(std::make_unique<PowerSgdSketch>(PowerSgdOptions{r}, shape));
  }
  return sketches;
}

TEST(PowerSgd, FollowsThePaper) {
  const GradientShape shape = FilterShape(30, 50);
  const auto m = NormalGradient(shape.elements(), 1);
  const auto rank = MakeRanks(1, 2, shape);
  ReduceSketches(rank, {}, {m});
  const Matrix q = Vectors(rank[0]->state(), 2);
  const auto approximation = ReduceSketches(rank, {.step = 1}, {m})[0];
  // P = M Q, orthonormal; Q = M^T P
  Matrix p(2, std::vector<double>(30)), next(2, std::vector<double>(50));
  for (int c = 0; c < 2; ++c) {
    for (int i = 0; i < 1500; ++i) p[c][i / 50] += m[i] * q[c][i % 50];
    const double along = c == 0 ? 0 : Dot(p[1], p[0]);
    for (int i = 0; i < 30 && c == 1; ++i) p[1][i] -= along * p[0][i];
    const double length = std::sqrt(Dot(p[c], p[c]));
    for (double& x : p[c]) x /= length;
    for (int i = 0; i < 1500; ++i) next[c][i % 50] += m[i] * p[c][i / 50];
  }
  const Matrix state = Vectors(rank[0]->state(), 2);
  for (int c = 0; c < 2; ++c) {
    for (int j = 0; j < 50; ++j) EXPECT_NEAR(state[c][j], next[c][j], 1e-4);
  }
  for (int i = 0; i < 1500; ++i) {
    EXPECT_NEAR(approximation[i], p[0][i / 50] * next[0][i % 50] + p[1][i / 50] * next[1][i % 50],
                1e-4);
  }
}

TEST(PowerSgd, ReproducesMatricesOfItsRankOrLess) {
  for (const auto& [rows, columns] : {std::pair(64, 27), {10, 300}, {128, 576}, {3, 3}}) {
    const GradientShape shape = FilterShape(rows, columns);
    for (int r = 1; r <= 8; ++r) {
      for (int of_matrix = 1; of_matrix <= std::min(r, 3); ++of_matrix) {
        for (const float scale : {1.0f, 1e-6f}) {
          const auto m = LowRank(shape, of_matrix, 7, scale);
          const auto rank = MakeRanks(1, r, shape);
          for (uint64_t step = 0; step < 3; ++step) {
            const auto out = ReduceSketches(rank, {.step = step}, {m})[0];
            EXPECT_LT(RelativeError(out, m), 1e-4)
                << rows << " x " << columns << " of rank " << of_matrix << ", by " << r;
          }
        }
      }
    }
  }
}

// Subspace iteration on one matrix: every step gets closer to the best approximation.
TEST(PowerSgd, TheWarmStartImprovesEveryStep) {
  const GradientShape shape = FilterShape(40, 60);
  const auto m = LowRank(shape, 20, 3);
  const auto rank = MakeRanks(1, 3, shape);
  std::vector<double> errors;
  for (uint64_t step = 0; step < 12; ++step) {
    errors.push_back(RelativeError(ReduceSketches(rank, {.step = step}, {m})[0], m));
    if (step > 0) {
      EXPECT_LE(errors[step], errors[step - 1] + 1e-6);
    }
  }
  EXPECT_LT(errors.back(), 0.95 * errors.front());
  // A sketch that starts from scratch in every step does not improve.
  double cold = 0;
  for (uint64_t step = 0; step < 12; ++step) {
    cold += RelativeError(ReduceSketches(MakeRanks(1, 3, shape), {.step = step}, {m})[0], m) / 12;
  }
  EXPECT_LT(errors.back(), 0.95 * cold);
}

TEST(PowerSgd, FourRanksHaveTheSameBitsAndApproximateTheSum) {
  const GradientShape shape = FilterShape(64, 144);
  const auto ranks = MakeRanks(4, 4, shape);
  const auto alone = MakeRanks(1, 4, shape);
  for (uint64_t step = 0; step < 4; ++step) {
    std::vector<std::vector<float>> gradients;
    std::vector<float> sum(shape.elements());
    for (uint64_t rank = 0; rank < 4; ++rank) {
      gradients.push_back(NormalGradient(shape.elements(), 10 * step + rank));
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += gradients[rank][i];
    }
    const auto out = ReduceSketches(ranks, {.step = step}, gradients);
    for (int rank = 1; rank < 4; ++rank) {
      EXPECT_EQ(out[rank], out[0]);
      EXPECT_TRUE(std::ranges::equal(ranks[rank]->state(), ranks[0]->state()));
    }
    EXPECT_LT(RelativeError(out[0], ReduceSketches(alone, {.step = step}, {sum})[0]), 1e-4);
  }
}

TEST(PowerSgd, ContinuesFromItsState) {
  const GradientShape shape = FilterShape(30, 50);
  const auto one = MakeRanks(1, 2, shape), other = MakeRanks(1, 2, shape);
  for (uint64_t step = 0; step < 3; ++step) {
    ReduceSketches(one, {.step = step}, {NormalGradient(shape.elements(), step)});
  }
  std::ranges::copy(one[0]->state(), other[0]->state().begin());
  for (uint64_t step = 3; step < 6; ++step) {
    const auto gradient = NormalGradient(shape.elements(), step);
    EXPECT_EQ(ReduceSketches(one, {.step = step}, {gradient}),
              ReduceSketches(other, {.step = step}, {gradient}));
  }
}

// A layer without gradient for a while must recover.
TEST(PowerSgd, RecoversFromZerosAndFromInfinity) {
  const GradientShape shape = FilterShape(30, 50);
  const auto m = LowRank(shape, 2, 5);
  const auto rank = MakeRanks(1, 2, shape);
  const std::vector<float> zero(shape.elements());
  EXPECT_EQ(ReduceSketches(rank, {.step = 0}, {zero})[0], zero);
  EXPECT_LT(RelativeError(ReduceSketches(rank, {.step = 1}, {m})[0], m), 1e-4);
  std::vector<float> infinite(shape.elements(), INFINITY);
  const auto seen = ReduceSketches(rank, {.step = 2}, {infinite})[0];
  EXPECT_TRUE(std::ranges::none_of(seen, [](float x) { return std::isfinite(x); }));
  EXPECT_LT(RelativeError(ReduceSketches(rank, {.step = 3}, {m})[0], m), 1e-4);
}

// Error feedback on two ranks: each keeps its part of what the approximation leaves out.
TEST(PowerSgd, AKeptResidualArrivesAndADroppedOneDoesNot) {
  constexpr int kSteps = 300, kRanks = 2;
  const GradientShape shape = FilterShape(20, 30);
  std::vector<std::vector<float>> gradients;
  gradients.reserve(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    gradients.push_back(NormalGradient(shape.elements(), rank));
  }
  for (const bool keep : {true, false}) {
    const auto ranks = MakeRanks(kRanks, 2, shape);
    std::vector<std::vector<float>> residuals(kRanks, std::vector<float>(shape.elements()));
    std::vector<float> arrived(shape.elements()), expected(shape.elements());
    for (uint64_t step = 0; step < kSteps; ++step) {
      for (int rank = 0; rank < kRanks; ++rank) {
        for (int64_t i = 0; i < shape.elements(); ++i) {
          residuals[rank][i] = (keep ? residuals[rank][i] : 0) + gradients[rank][i];
          expected[i] += gradients[rank][i];
        }
      }
      const auto out = ReduceSketches(ranks, {.step = step}, residuals)[0];
      for (int64_t i = 0; i < shape.elements(); ++i) {
        arrived[i] += out[i];
        for (auto& residual : residuals) residual[i] -= out[i] / kRanks;
      }
    }
    const double error = RelativeError(arrived, expected);
    EXPECT_LT(error, keep ? 0.1 : 1.5);
    EXPECT_GT(error, keep ? 0 : 0.5);
    std::vector<float> accounted = arrived;
    for (const auto& residual : residuals) {
      for (int64_t i = 0; i < shape.elements(); ++i) accounted[i] += residual[i];
    }
    if (keep) {
      EXPECT_LT(RelativeError(accounted, expected), 1e-4);
    }
  }
}

TEST(PowerSgd, IsWorthwhileIfItHalvesTheBytes) {
  EXPECT_TRUE(PowerSgdSketch::Worthwhile(FilterShape(512, 4608), 2));
  EXPECT_FALSE(PowerSgdSketch::Worthwhile(FilterShape(64, 27), 10));
  EXPECT_FALSE(PowerSgdSketch::Worthwhile(FilterShape(4, 4), 1));  // 16 floats, in 8
  EXPECT_TRUE(PowerSgdSketch::Worthwhile(FilterShape(4, 5), 1));   // 20 floats, in 9
  EXPECT_FALSE(PowerSgdSketch::Worthwhile(VectorShape(1000), 1));
}

TEST(PowerSgd, HasNoMoreVectorsThanTheMatrix) {
  PowerSgdSketch sketch({8}, FilterShape(3, 20));
  EXPECT_EQ(sketch.Floats(0), 3 * 3);
  EXPECT_EQ(sketch.Floats(1), 3 * 20);
  EXPECT_EQ(sketch.Describe(), "rank 3");
}

}  // namespace
}  // namespace ringtail
