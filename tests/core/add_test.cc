#include "core/kernels/add.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "core/random.h"
#include "tests/testing/kernel_objects.h"

namespace ringtail {
namespace {

constexpr KernelIsa kIsas[] = {KernelIsa::kBaseline, KernelIsa::kAvx2, KernelIsa::kAvx512};

TEST(AddFloats, IsAdditionOnEveryInstructionSet) {
  const KernelIsa best = SelectedKernelIsa();
  Rng rng(RngKey(1).With(kTestStream));
  for (const int64_t n : {0, 1, 7, 8, 15, 16, 17, 1000, 1031}) {
    std::vector<float> addend(n + 1), before(n + 1), expected(n + 1);
    for (int64_t i = 0; i <= n; ++i) {
      addend[i] = rng.Normal();
      before[i] = expected[i] = rng.Normal();
      if (i < n) expected[i] += addend[i];  // the last one is beyond the end
    }
    for (const KernelIsa isa : kIsas) {
      if (isa > best) continue;
      SetKernelIsaForTest(isa);
      std::vector<float> sum = before;
      RT_KERNEL(AddFloats)(addend.data(), n, sum.data());
      EXPECT_EQ(std::memcmp(sum.data(), expected.data(), sum.size() * sizeof(float)), 0)
          << KernelIsaName(isa) << ", " << n;
    }
    SetKernelIsaForTest(best);
  }
}

TEST(KernelObjects, DefineNothingOutsideTheirIsa) {
  int objects = 0;
  EXPECT_EQ(SymbolsOutsideTheirIsa(RT_BINARY_DIR, "ringtail_core_kernels", &objects),
            std::vector<std::string>());
  // add.cc, bfloat16.cc, product_block.cc, product_speed.cc, sum_of_squares.cc
  EXPECT_EQ(objects, 3 * 5);
}

}  // namespace
}  // namespace ringtail
