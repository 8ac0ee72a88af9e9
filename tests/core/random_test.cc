#include "core/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace ringtail {
namespace {

using ::testing::ElementsAre;

constexpr int kDraws = 1 << 18;

Rng TestRng(uint64_t seed = 1) { return Rng(RngKey(seed).With(kTestStream)); }

// Known answers of Random123 (Salmon et al., SC'11), philox4x32 with 10 rounds.
TEST(Philox, KnownAnswers) {
  EXPECT_THAT(Philox4x32({0, 0, 0, 0}, 0),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_THAT(Philox4x32({kOnes, kOnes, kOnes, kOnes}, ~uint64_t{0}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(Rng, DrawsAreTheBlocksOfTheKeyInOrder) {
  const RngKey key(0x299f31d0a4093822);
  Rng rng(key);
  for (uint32_t block = 0; block < 3; ++block) {
    for (const uint32_t expected : Philox4x32({block, 0, 0, 0}, 0x299f31d0a4093822)) {
      EXPECT_EQ(rng.Bits(), expected);
    }
  }
}

TEST(RngKey, EveryWordAndItsPlaceMatter) {
  std::set<uint64_t> keys;
  int made = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (uint64_t word = 0; word < 10; ++word) {
      keys.insert(RngKey(seed).With(word).bits());
      keys.insert(RngKey(seed).With(word).With(uint64_t{1}).bits());
      keys.insert(RngKey(seed).With(word << 32).With(uint64_t{1}).bits());
      made += word == 0 ? 2 : 3;  // 0 << 32 is 0
    }
  }
  EXPECT_EQ(static_cast<int>(keys.size()), made);
  EXPECT_NE(RngKey(1).With(uint64_t{2}).With(uint64_t{3}).bits(),
            RngKey(1).With(uint64_t{3}).With(uint64_t{2}).bits());
  EXPECT_NE(RngKey(1).With(uint64_t{2}).bits(), RngKey(2).With(uint64_t{1}).bits());
  EXPECT_NE(RngKey(1).With("conv1").bits(), RngKey(1).With("conv2").bits());
  EXPECT_NE(RngKey(1).With("").bits(), RngKey(1).bits());
}

TEST(Rng, SameKeySameDraws) {
  Rng a = TestRng(), b = TestRng(), other = TestRng(2);
  int equal = 0;
  for (int i = 0; i < 100; ++i) {
    const uint32_t draw = a.Bits();
    EXPECT_EQ(draw, b.Bits());
    equal += draw == other.Bits();
  }
  EXPECT_LT(equal, 3);
}

TEST(Rng, UniformIsUniform) {
  constexpr int kBins = 64;
  std::vector<int> bins(kBins);
  Rng rng = TestRng();
  for (int i = 0; i < kDraws; ++i) {
    const float u = rng.Uniform();
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    ++bins[static_cast<int>(u * kBins)];
  }
  double chi_squared = 0;
  constexpr double kExpected = double{kDraws} / kBins;
  for (const int count : bins) chi_squared += (count - kExpected) * (count - kExpected) / kExpected;
  EXPECT_LT(chi_squared, 120);  // 63 degrees of freedom: above 120 with probability 2e-5
  EXPECT_GT(chi_squared, 25);   // and below 25 with probability 1e-6: too even is not random
}

TEST(Rng, UniformStaysBelowHigh) {
  Rng rng = TestRng();
  bool near_high = false;
  const float high = std::nextafter(std::nextafter(1.0f, 2.0f), 2.0f);
  for (int i = 0; i < kDraws; ++i) {
    const float u = rng.Uniform(1.0f, high);  // two values; rounding would reach `high` often
    ASSERT_GE(u, 1.0f);
    ASSERT_LT(u, high);
    near_high |= u > 1.0f;
  }
  EXPECT_TRUE(near_high);
  EXPECT_EQ(rng.Uniform(3.0f, 3.0f), 3.0f);
}

TEST(Rng, BelowIsUnbiased) {
  // 2^64 mod n is about n / 2: without rejection the lower half would be drawn twice as often.
  const uint64_t n = std::numeric_limits<uint64_t>::max() / 3 * 2;
  std::array<int, 4> quarters{};
  Rng rng = TestRng();
  for (int i = 0; i < kDraws; ++i) {
    const uint64_t draw = rng.Below(n);
    ASSERT_LT(draw, n);
    ++quarters[draw / (n / 4 + 1)];
  }
  constexpr double kExpected = kDraws / 4.0, kSixSigma = 6 * 222;  // sigma = sqrt(kDraws * 3 / 16)
  for (const int count : quarters) EXPECT_NEAR(count, kExpected, kSixSigma);
}

TEST(Rng, BelowReachesEveryValue) {
  Rng rng = TestRng();
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(rng.Below(7));
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_EQ(rng.Below(1), 0u);
}

TEST(RngDeathTest, NothingIsBelowZero) {
  Rng rng = TestRng();
  EXPECT_DEATH(rng.Below(0), "no number below 0");
}

TEST(Rng, NormalHasTheMomentsOfANormal) {
  Rng rng = TestRng();
  double sum = 0, squares = 0, cubes = 0, fourths = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = rng.Normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    cubes += x * x * x;
    fourths += x * x * x * x;
  }
  // Six standard errors: sqrt(1, 2, 15, 96 / kDraws).
  EXPECT_NEAR(sum / kDraws, 0, 0.012);
  EXPECT_NEAR(squares / kDraws, 1, 0.017);
  EXPECT_NEAR(cubes / kDraws, 0, 0.046);
  EXPECT_NEAR(fourths / kDraws, 3, 0.115);
}

}  // namespace
}  // namespace ringtail
