#include "dist/compression/sketches/random_k_sketch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/dist/compression/sparse_gradients.h"

namespace ringtail {
namespace {

std::vector<std::unique_ptr<Sketch>> MakeRanks(int ranks, double density,
                                               const GradientShape& shape) {
  std::vector<std::unique_ptr<Sketch>> sketches;
  sketches.reserve(ranks);
  for (int i = 0; i < ranks; ++i) {
    sketches.push_back(std::make_unique<RandomKSketch>(RandomKOptions{density}, shape));
  }
  return sketches;
}

// The places of a gradient without zeros that arrive.
std::set<int64_t> Places(RandomKSketch* sketch, const EncodeContext& context, int64_t elements) {
  std::vector<float> gradient(elements, 1), floats(sketch->Floats(0)), out(elements, NAN);
  sketch->Pack(0, context, gradient, floats);
  sketch->Take(0, context, floats);
  sketch->Unpack(context, out);
  std::set<int64_t> places;
  for (int64_t i = 0; i < elements; ++i) {
    EXPECT_TRUE(out[i] == 0 || out[i] == 1);
    if (out[i] == 1) places.insert(i);
  }
  return places;
}

TEST(RandomK, SumsOfAllRanksArriveAtTheSamePlaces) {
  constexpr int64_t kElements = 5000;
  const auto ranks = MakeRanks(4, 0.1, VectorShape(kElements));
  std::vector<std::vector<float>> gradients;
  for (uint64_t rank = 0; rank < 4; ++rank) {
    gradients.push_back(NormalGradient(kElements, rank));
  }
  const auto unpacked = ReduceSketches(ranks, {.seed = 1, .step = 2, .parameter = 3}, gradients);
  int64_t arrived = 0;
  for (int64_t i = 0; i < kElements; ++i) {
    double sum = 0;
    for (const auto& gradient : gradients) sum += gradient[i];
    if (unpacked[0][i] == 0) continue;
    EXPECT_NEAR(unpacked[0][i], sum, 1e-5);
    ++arrived;
  }
  EXPECT_EQ(arrived, 500);
  EXPECT_EQ(ranks[0]->Floats(0), 500);
  for (int rank = 1; rank < 4; ++rank) EXPECT_EQ(unpacked[rank], unpacked[0]);
}

TEST(RandomK, DrawsExactlyKDifferentPlacesForEveryDensity) {
  for (const int64_t elements : {1, 2, 63, 64, 65, 1000}) {
    for (const double density : {0.001, 0.1, 0.5, 0.51, 0.9, 1.0}) {
      RandomKSketch sketch({density}, VectorShape(elements));
      const auto k = static_cast<int64_t>(std::ceil(density * static_cast<double>(elements)));
      EXPECT_EQ(Places(&sketch, {}, elements).size(), k) << density << " of " << elements;
    }
  }
}

TEST(RandomK, PlacesDependOnSeedStepAndParameterButNotOnTheRank) {
  constexpr int64_t kElements = 1000;
  RandomKSketch sketch({0.1}, VectorShape(kElements));
  const EncodeContext context{.seed = 1, .step = 2, .parameter = 3, .rank = 4};
  const auto places = Places(&sketch, context, kElements);
  EncodeContext other = context;
  other.rank = 5;
  EXPECT_EQ(Places(&sketch, other, kElements), places);
  for (int i = 0; i < 3; ++i) {
    other = context;
    (i == 0 ? other.seed : other.step) += i < 2 ? 1 : 0;
    other.parameter += i == 2 ? 1 : 0;
    const auto others = Places(&sketch, other, kElements);
    std::vector<int64_t> common;
    std::set_intersection(places.begin(), places.end(), others.begin(), others.end(),
                          std::back_inserter(common));
    EXPECT_LT(common.size(), 30) << i;  // 10 are expected
  }
}

// Each place is drawn as often as any other: within five standard deviations of a binomial.
TEST(RandomK, AllPlacesAreEquallyLikely) {
  constexpr int64_t kElements = 100;
  constexpr int kSteps = 4000;
  for (const double density : {0.2, 0.8}) {
    RandomKSketch sketch({density}, VectorShape(kElements));
    std::vector<int> turns(kElements);
    for (uint64_t step = 0; step < kSteps; ++step) {
      for (const int64_t place : Places(&sketch, {.step = step}, kElements)) ++turns[place];
    }
    for (const int count : turns) {
      EXPECT_NEAR(count, kSteps * density, 5 * std::sqrt(kSteps * density * (1 - density)));
    }
  }
}

// A constant gradient arrives in due proportion if the residual is kept.
TEST(RandomK, AKeptResidualArrivesAndADroppedOneDoesNot) {
  constexpr int64_t kElements = 1000;
  constexpr int kSteps = 500;
  const auto gradient = NormalGradient(kElements, 1);
  for (const bool keep : {true, false}) {
    const auto rank = MakeRanks(1, 0.1, VectorShape(kElements));
    std::vector<float> residual(kElements), arrived(kElements), expected(kElements);
    for (uint64_t step = 0; step < kSteps; ++step) {
      for (int64_t i = 0; i < kElements; ++i) {
        residual[i] = (keep ? residual[i] : 0) + gradient[i];
        expected[i] += gradient[i];
      }
      const auto out = ReduceSketches(rank, {.step = step}, {residual})[0];
      for (int64_t i = 0; i < kElements; ++i) {
        arrived[i] += out[i];
        residual[i] -= out[i];
      }
    }
    const double error = RelativeError(arrived, expected);
    EXPECT_LT(error, keep ? 0.05 : 1.5);
    EXPECT_GT(error, keep ? 0 : 0.85);
    for (int64_t i = 0; i < kElements && keep; ++i) {
      ASSERT_NEAR(arrived[i] + residual[i], expected[i], 0.02);
    }
  }
}

// Wherever it is, in every step: the run must stop at once, on all ranks.
TEST(RandomK, AllRanksNoticeWhatIsNotFiniteOnOne) {
  constexpr int64_t kElements = 1000;
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
    const auto ranks = MakeRanks(2, 0.01, VectorShape(kElements));
    for (const int64_t place : {0, 500, 999}) {
      std::vector<std::vector<float>> gradients = {NormalGradient(kElements, 1),
                                                   NormalGradient(kElements, 2)};
      gradients[1][place] = bad;
      for (const auto& unpacked : ReduceSketches(ranks, {.seed = 1}, gradients)) {
        EXPECT_FALSE(std::ranges::all_of(unpacked, [](float v) { return std::isfinite(v); }))
            << bad << " at " << place;
      }
    }
  }
}

}  // namespace
}  // namespace ringtail
