#include "core/sum_of_squares.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "core/kernel_isa.h"
#include "core/random.h"

namespace ringtail {
namespace {

TEST(SumOfSquaresTest, IsExactForWholeNumbersOfAnyLength) {
  std::vector<float> values;
  double sum = 0;
  for (int n = 0; n < 40; ++n) {
    EXPECT_EQ(SumOfSquares(values), sum) << n;
    values.push_back(static_cast<float>(n % 2 == 0 ? n + 1 : -n));
    sum += static_cast<double>(values.back()) * values.back();
  }
}

TEST(SumOfSquaresTest, IsDoublePrecision) {
  const std::vector<float> values(1'000'003, 0.1F);  // 0.1F^2 is exact in double
  EXPECT_NEAR(SumOfSquares(values), 1'000'003 * (static_cast<double>(0.1F) * 0.1F), 1e-7);
  EXPECT_EQ(SumOfSquares(std::vector<float>{3e30F, 4e30F}),
            static_cast<double>(3e30F) * 3e30F + static_cast<double>(4e30F) * 4e30F);
  EXPECT_GT(SumOfSquares(std::vector<float>{1e-40F}), 0);
}

// On every instruction set: the lanes of the header, one element after the other.
TEST(SumOfSquaresTest, AddsInTheDefinedOrder) {
  constexpr size_t kLanes = 16;
  constexpr KernelIsa kIsas[] = {KernelIsa::kBaseline, KernelIsa::kAvx2, KernelIsa::kAvx512};
  const KernelIsa best = SelectedKernelIsa();
  Rng random(RngKey(3).With(kTestStream));
  for (const size_t count : {1U, 15U, 16U, 17U, 1000U, 65537U}) {
    std::vector<float> values;
    for (size_t i = 0; i < count; ++i) values.push_back(random.Normal() * 1e-3F);
    std::array<double, kLanes> lanes{};
    for (size_t i = 0; i < count; ++i) {
      volatile const double square = static_cast<double>(values[i]) * values[i];
      lanes[i % kLanes] += square;
    }
    double sum = 0;
    for (const double lane : lanes) sum += lane;
    for (const KernelIsa isa : kIsas) {
      if (isa > best) continue;
      SetKernelIsaForTest(isa);
      EXPECT_EQ(SumOfSquares(values), sum) << count << ", " << KernelIsaName(isa);
    }
    SetKernelIsaForTest(best);
  }
}

}  // namespace
}  // namespace ringtail
