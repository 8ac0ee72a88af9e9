#include "tests/testing/kernel_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringtail {
namespace {

TEST(KernelObjectsTest, DefineNothingOutsideTheirIsa) {
  int objects = 0;
  EXPECT_THAT(SymbolsOutsideTheirIsa(RT_BINARY_DIR, "ringtail_compression_kernels", &objects),
              testing::IsEmpty());
  EXPECT_GE(objects, 3 * 5);
}

}  // namespace
}  // namespace ringtail
