#include "core/text/counted.h"

#include <gtest/gtest.h>

namespace ringtail {
namespace {

TEST(Counted, OnlyOneIsSingular) {
  EXPECT_EQ(Counted(0, "step"), "0 steps");
  EXPECT_EQ(Counted(1, "step"), "1 step");
  EXPECT_EQ(Counted(int64_t{2}, "step"), "2 steps");
  EXPECT_EQ(Counted(size_t{1}, "host"), "1 host");
}

TEST(Counted, WholeNumbersHaveAllTheirDigits) {
  EXPECT_EQ(Counted(1234567, "step"), "1234567 steps");
}

TEST(Counted, RealNumbersHaveFourSignificantDigits) {
  EXPECT_EQ(Counted(1.0, "epoch"), "1 epoch");
  EXPECT_EQ(Counted(1.00001, "epoch"), "1 epoch");
  EXPECT_EQ(Counted(0.5, "epoch"), "0.5 epochs");
  EXPECT_EQ(Counted(1.28205, "epoch"), "1.282 epochs");
}

}  // namespace
}  // namespace ringtail
