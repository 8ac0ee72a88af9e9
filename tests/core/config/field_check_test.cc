#include "core/config/field_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace ringtail {
namespace {

TEST(FieldCheckTest, NamesFieldValueAndRange) {
  const FieldCheck check(nullptr, "optim.sgd");
  EXPECT_EQ(check.FractionBelowOne("momentum", 1.5).message(),
            "optim.sgd.momentum: momentum is 1.5; it must be at least 0 and less than 1");
  EXPECT_EQ(check.Between("rank", 33, 1, 32).message(),
            "optim.sgd.rank: rank is 33; it must be from 1 to 32");
  EXPECT_EQ(check.AtLeast("keep", int64_t{0}, 1).message(),
            "optim.sgd.keep: keep is 0; it must be at least 1");
  EXPECT_EQ(check.PositiveUpTo("std", -2.0, 1000).message(),
            "optim.sgd.std: std is -2; it must be greater than 0 and at most 1000");
}

TEST(FieldCheckTest, WithoutASourceTheCallerGetsTheField) {
  std::string failed;
  const FieldCheck check(&failed);
  EXPECT_EQ(check.Within("normal").NotNegative("std", -2).message(),
            "std is -2; it must be finite and at least 0");
  EXPECT_EQ(failed, "normal.std");
  EXPECT_EQ(check.Within("normal").Error("", "no").message(), "no");
  EXPECT_EQ(failed, "normal");
}

TEST(FieldCheckTest, RangesIncludeTheirEnds) {
  const FieldCheck check(nullptr, "");
  EXPECT_TRUE(check.Between("x", 1, 1, 32).ok());
  EXPECT_TRUE(check.Between("x", 32, 1, 32).ok());
  EXPECT_TRUE(check.Fraction("x", 1).ok());
  EXPECT_TRUE(check.FractionBelowOne("x", 0).ok());
  EXPECT_FALSE(check.FractionBelowOne("x", 1).ok());
  EXPECT_TRUE(check.PositiveFraction("x", 1).ok());
  EXPECT_FALSE(check.PositiveFraction("x", 0).ok());
  EXPECT_TRUE(check.AtLeast("x", 1, 1).ok());
  EXPECT_TRUE(check.NotNegative("x", 0).ok());
  EXPECT_FALSE(check.Positive("x", 0).ok());
}

TEST(FieldCheckTest, RejectsNanAndInfinity) {
  const FieldCheck check(nullptr, "");
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    EXPECT_FALSE(check.Positive("x", value).ok()) << value;
    EXPECT_FALSE(check.NotNegative("x", value).ok()) << value;
    EXPECT_FALSE(check.Fraction("x", value).ok()) << value;
    EXPECT_FALSE(check.FractionBelowOne("x", value).ok()) << value;
    EXPECT_FALSE(check.PositiveFraction("x", value).ok()) << value;
    EXPECT_FALSE(check.Between("x", value, 0, 1).ok()) << value;
    EXPECT_FALSE(check.AtLeast("x", value, 0).ok()) << value;
  }
}

// 1.1F is 1.10000002384185791015625.
TEST(FieldCheckTest, FloatsKeepTheirDigits) {
  EXPECT_EQ(FieldCheck(nullptr, "a").Fraction("x", 1.1F).message(),
            "a.x: x is 1.1; it must be from 0 to 1");
}

TEST(FieldCheckTest, ChecksNestedMessages) {
  const FieldCheck whole(nullptr, "");
  EXPECT_EQ(whole.Error("x", "no").message(), "x: no");
  EXPECT_EQ(whole.Within("data").Within("augment").Error("x", "no").message(),
            "data.augment.x: no");
}

}  // namespace
}  // namespace ringtail
