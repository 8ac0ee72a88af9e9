#include "core/fast_bf16_products.h"

#include <gtest/gtest.h>

#include "core/kernels/bfloat16.h"
#include "core/kernels/product_speed.h"

namespace ringtail {
namespace {

// What is measured is what it says: nothing is left out.
TEST(FastBf16ProductsTest, MultipliesAsOftenAsItSays) {
  if (!RT_KERNEL(HasBf16Products)()) GTEST_SKIP() << "no bf16 products";
  EXPECT_EQ(RT_KERNEL(RunBf16Products)(7), 2 * 16 * 7);
  EXPECT_EQ(RT_KERNEL(RunFloatProducts)(7), 16 * 7);
}

TEST(FastBf16ProductsTest, IsTheSameEachTimeAndOnlyWhereThereAreAny) {
  const bool fast = FastBf16Products();
  EXPECT_EQ(FastBf16Products(), fast);
  if (fast) {
    EXPECT_TRUE(RT_KERNEL(HasBf16Products)());
  }
  const KernelIsa isa = SelectedKernelIsa();
  SetKernelIsaForTest(KernelIsa::kAvx2);  // whose kernels have none
  EXPECT_FALSE(FastBf16Products());
  SetKernelIsaForTest(isa);
}

}  // namespace
}  // namespace ringtail
