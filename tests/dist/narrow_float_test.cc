#include "dist/compression/narrow_float.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/random.h"

namespace ringtail {
namespace {

constexpr int kRandomNumbers = 300'000;

// By its definition: (-1)^sign 2^(exponent - 15) (1 + fraction / 1024).
double ValueOfHalf(int half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const double sign = half >> 15 ? -1 : 1;
  return exponent == 0 ? sign * std::ldexp(fraction, -24)
                       : sign * std::ldexp(1024 + fraction, exponent - 25);
}

// Random bits, so of all sizes; most of them near what f16 can hold.
float RandomFloat(Rng* random) {
  const uint32_t bits = random->Bits();
  if (random->Below(4) == 0) return std::bit_cast<float>(bits);
  const auto exponent = static_cast<uint32_t>(127 - 27 + random->Below(44));
  return std::bit_cast<float>((bits & 0x807fffff) | exponent << 23);
}

TEST(HalfTest, EveryHalfIsWhatItsBitsSayAndComesBack) {
  for (int half = 0; half < 1 << 16; ++half) {
    const float value = FloatFromHalf(static_cast<uint16_t>(half));
    if ((half & 0x7c00) == 0x7c00) {
      EXPECT_EQ(std::isinf(value), (half & 0x3ff) == 0);
      EXPECT_EQ(std::isnan(value), (half & 0x3ff) != 0);
      EXPECT_EQ(std::signbit(value), half >> 15 != 0);
    } else {
      ASSERT_EQ(value, ValueOfHalf(half));
    }
    if (!std::isnan(value)) {
      ASSERT_EQ(HalfFromFloat(value), half);
    }
  }
}

TEST(HalfTest, RoundsToTheNearestAndTiesToEven) {
  Rng random(RngKey(1).With(kTestStream));
  for (int i = 0; i < kRandomNumbers; ++i) {
    const float value = RandomFloat(&random);
    if (!std::isfinite(value) || std::fabs(value) > 65504) continue;
    const int half = HalfFromFloat(value);
    const double error = std::fabs(ValueOfHalf(half) - value);
    for (const int neighbour : {half - 1, half + 1}) {
      if ((neighbour & 0x7fff) >= 0x7c00 || (neighbour ^ half) >> 15 != 0) continue;
      const double other = std::fabs(ValueOfHalf(neighbour) - value);
      ASSERT_LE(error, other) << value;
      if (error == other) {
        ASSERT_EQ(half % 2, 0) << value;
      }
    }
  }
  EXPECT_EQ(HalfFromFloat(1 + 0x1p-11f), 0x3c00);      // a tie, down to even
  EXPECT_EQ(HalfFromFloat(1 + 3 * 0x1p-11f), 0x3c02);  // a tie, up to even
}

TEST(HalfTest, BeyondItsRangeIsTheLargest) {
  EXPECT_EQ(FloatFromHalf(HalfFromFloat(65520)), 65504);
  EXPECT_EQ(FloatFromHalf(HalfFromFloat(-1e38f)), -65504);
  EXPECT_EQ(FloatFromHalf(HalfFromFloat(-INFINITY)), -INFINITY);
  EXPECT_TRUE(std::isnan(FloatFromHalf(HalfFromFloat(NAN))));
  EXPECT_EQ(HalfFromFloat(1e-10f), 0);
  EXPECT_EQ(HalfFromFloat(-1e-10f), 0x8000);
}

TEST(Bfloat16Test, RoundsToTheNearestAndTiesToEven) {
  Rng random(RngKey(2).With(kTestStream));
  for (int i = 0; i < kRandomNumbers; ++i) {
    const float value = std::bit_cast<float>(random.Bits());
    const uint16_t narrow = Bfloat16FromFloat(value);
    const float back = FloatFromBfloat16(narrow);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(back));
      continue;
    }
    if (std::isinf(back)) {
      ASSERT_GT(std::fabs(value), 3.38e38);
      continue;
    }
    const double error = std::fabs(static_cast<double>(back) - value);
    for (const int step : {-1, 1}) {
      const float other = FloatFromBfloat16(static_cast<uint16_t>(narrow + step));
      if (!std::isfinite(other) || std::signbit(other) != std::signbit(back)) continue;
      const double other_error = std::fabs(static_cast<double>(other) - value);
      ASSERT_LE(error, other_error) << value;
      if (error == other_error) {
        ASSERT_EQ(narrow % 2, 0) << value;
      }
    }
  }
  // NaN whose fraction is in the lower half only.
  EXPECT_TRUE(std::isnan(FloatFromBfloat16(Bfloat16FromFloat(std::bit_cast<float>(0x7f800001)))));
}

}  // namespace
}  // namespace ringtail
