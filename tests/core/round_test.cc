#include "core/round.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace ringtail {
namespace {

TEST(RoundTest, CountsThePartsThatCover) {
  EXPECT_EQ(CeilDivide(0, 4), 0);
  EXPECT_EQ(CeilDivide(1, 4), 1);
  EXPECT_EQ(CeilDivide(4, 4), 1);
  EXPECT_EQ(CeilDivide(5, 4), 2);
  EXPECT_EQ(CeilDivide(int64_t{1} << 40, 3), 366503875926);
}

TEST(RoundTest, RoundsUpToMultiples) {
  EXPECT_EQ(RoundUp(0, 64), 0);
  EXPECT_EQ(RoundUp(1, 64), 64);
  EXPECT_EQ(RoundUp(64, 64), 64);
  EXPECT_EQ(RoundUp(size_t{65}, 64), size_t{128});
}

}  // namespace
}  // namespace ringtail
