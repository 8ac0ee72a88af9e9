#include <gtest/gtest.h>

#include <cmath>

#include "core/parallel_for.h"
#include "optim/weight_average.h"
#include "tests/optim/test_arena.h"

namespace ringtail {
namespace {

constexpr double kDecay = 0.3;

// Moves every weight and buffer by another amount.
void Train(int64_t step, ParameterArena* arena) {
  DrawGradients(step, arena);
  for (size_t i = 0; i < arena->values().size(); ++i) arena->values()[i] -= arena->grads()[i];
  for (const Parameter& p : arena->buffers()) {
    for (float& value : p.value()) value = 0.5F * value + static_cast<float>(step);
  }
}

TEST(WeightAverageTest, StartsAsACopyAndFollowsTheFormula) {
  const auto arena = MakeTestArena();
  WeightAverage average(kDecay, arena.get());
  EXPECT_EQ(Copy(average.values()), Copy(arena->values()));
  EXPECT_EQ(Copy(average.buffers()), Copy(arena->buffer_values()));
  std::vector<double> values(average.values().begin(), average.values().end());
  std::vector<double> buffers(average.buffers().begin(), average.buffers().end());
  for (int64_t step = 0; step < 6; ++step) {
    Train(step, arena.get());
    average.Update(step);
    // 1/10, 2/11, 3/12, then 4/13 > 0.3: the bound holds from step 3 on.
    const double bounds[] = {1.0 / 10, 2.0 / 11, 3.0 / 12, 0.3, 0.3, 0.3};
    const double d = bounds[step];
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = d * values[i] + (1 - d) * arena->values()[i];
      ASSERT_NEAR(average.values()[i], values[i], 3e-6) << i << " after step " << step;
    }
    for (size_t i = 0; i < buffers.size(); ++i) {
      buffers[i] = d * buffers[i] + (1 - d) * arena->buffer_values()[i];
      ASSERT_NEAR(average.buffers()[i], buffers[i], 3e-6) << i << " after step " << step;
    }
  }
}

TEST(WeightAverageTest, SwapsBothWays) {
  const auto arena = MakeTestArena();
  WeightAverage average(kDecay, arena.get());
  Train(0, arena.get());
  average.Update(0);
  const auto weights = Copy(arena->values()), buffers = Copy(arena->buffer_values());
  const auto averages = Copy(average.values()), average_buffers = Copy(average.buffers());
  ASSERT_NE(weights, averages);
  ASSERT_NE(buffers, average_buffers);
  average.Swap();
  EXPECT_EQ(Copy(arena->values()), averages);
  EXPECT_EQ(Copy(arena->buffer_values()), average_buffers);
  EXPECT_EQ(Copy(arena->parameters()[1].value()),
            Copy(std::span(averages).subspan(arena->parameters()[1].offset, 7)));
  average.Swap();
  EXPECT_EQ(Copy(arena->values()), weights);
  EXPECT_EQ(Copy(arena->buffer_values()), buffers);
  EXPECT_EQ(Copy(average.values()), averages);
}

TEST(WeightAverageTest, GivesTheSameBitsForAnyNumberOfThreads) {
  const int threads = NumComputeThreads();
  std::vector<std::vector<float>> results;
  for (const int n : {1, 3}) {
    SetNumComputeThreads(n);
    const auto arena = MakeTestArena();
    WeightAverage average(kDecay, arena.get());
    for (int64_t step = 0; step < 3; ++step) {
      Train(step, arena.get());
      average.Update(step);
    }
    results.push_back(Copy(average.values()));
  }
  SetNumComputeThreads(threads);
  EXPECT_EQ(results[0], results[1]);
}

TEST(WeightAverageDeathTest, DoesNotAverageTheAverages) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto arena = MakeTestArena();
  WeightAverage average(kDecay, arena.get());
  average.Swap();
  EXPECT_DEATH(average.Update(0), "Swap\\(\\) back");
}

}  // namespace
}  // namespace ringtail
