#include "optim/parameter_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "core/parallel_for.h"
#include "tests/optim/test_arena.h"

namespace ringtail {
namespace {

struct Visits {
  std::vector<int> count;  // per float of the block
  std::vector<size_t> parameter;
  std::vector<std::pair<int64_t, int64_t>> parts;  // sorted
};

Visits Walk(const ParameterArena& arena) {
  Visits visits{
      std::vector<int>(arena.values().size()), std::vector<size_t>(arena.values().size()), {}};
  std::mutex mutex;
  WalkParameters(arena, [&](const ParameterPart& part) {
    const std::lock_guard lock(mutex);
    visits.parts.emplace_back(part.begin, part.end);
    for (int64_t i = part.begin; i < part.end; ++i) {
      ++visits.count[i];
      visits.parameter[i] = part.parameter;
    }
  });
  std::sort(visits.parts.begin(), visits.parts.end());
  return visits;
}

TEST(ParameterWalkTest, VisitsEachWeightOnceAndNoGap) {
  const auto arena = MakeTestArena();
  const Visits visits = Walk(*arena);
  int64_t total = 0;
  for (const int count : visits.count) total += count;
  EXPECT_EQ(total, arena->num_parameters());
  for (size_t k = 0; k < arena->parameters().size(); ++k) {
    const Parameter& p = arena->parameters()[k];
    for (int64_t i = p.offset; i < p.offset + p.elements; ++i) {
      ASSERT_EQ(visits.count[i], 1) << p.spec.name << " at " << i;
      ASSERT_EQ(visits.parameter[i], k) << p.spec.name << " at " << i;
    }
  }
}

TEST(ParameterWalkTest, CutsAtTheSamePlacesForAnyNumberOfThreads) {
  const auto arena = MakeTestArena();
  const int threads = NumComputeThreads();
  SetNumComputeThreads(1);
  const Visits alone = Walk(*arena);
  SetNumComputeThreads(3);
  const Visits team = Walk(*arena);
  SetNumComputeThreads(threads);
  EXPECT_GT(alone.parts.size(), arena->parameters().size()) << "the large weight must be cut";
  EXPECT_EQ(team.parts, alone.parts);
}

TEST(SumOverParametersTest, AddsThePartsOfEachParameter) {
  const auto arena = MakeTestArena();
  const auto sums = SumOverParameters(*arena, [](const ParameterPart& part) {
    return NormSquares{.weight = static_cast<double>(part.end - part.begin),
                       .update = static_cast<double>(part.begin)};
  });
  const Visits visits = Walk(*arena);
  ASSERT_EQ(sums.size(), arena->parameters().size());
  for (size_t k = 0; k < sums.size(); ++k) {
    const Parameter& p = arena->parameters()[k];
    double begins = 0;
    for (const auto& [begin, end] : visits.parts) {
      if (begin >= p.offset && end <= p.offset + p.elements) begins += static_cast<double>(begin);
    }
    EXPECT_EQ(sums[k].weight, p.elements) << p.spec.name;
    EXPECT_EQ(sums[k].update, begins) << p.spec.name;
  }
}

TEST(SumOverParametersTest, AddsInTheSameOrderForAnyNumberOfThreads) {
  // Numbers of very different sizes: in another order their sum rounds differently.
  const auto arena = MakeTestArena();
  const auto sums_on = [&](int threads) {
    SetNumComputeThreads(threads);
    std::vector<double> sums;
    for (const NormSquares& s : SumOverParameters(*arena, [](const ParameterPart& part) {
           return NormSquares{.weight = 1.0 / static_cast<double>(part.begin + 1)};
         })) {
      sums.push_back(s.weight);
    }
    return sums;
  };
  const int threads = NumComputeThreads();
  const std::vector<double> alone = sums_on(1);
  for (const int n : {2, 3, 5}) EXPECT_EQ(sums_on(n), alone);
  SetNumComputeThreads(threads);
}

}  // namespace
}  // namespace ringtail
