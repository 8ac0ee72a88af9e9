
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/kernels/bfloat16.h"
#include "core/random.h"

namespace ringtail {
namespace {

constexpr uint32_t kBfloat16s = 1 << 16;

Bfloat16 Nth(uint32_t i) { return {static_cast<uint16_t>(i)}; }
float FromBits(uint32_t bits) { return std::bit_cast<float>(bits); }

// The nearest of the two neighbours by distance, in double, which is exact; even where both are as
// near. `x` is finite.
uint16_t NearestByDistance(float x) {
  const auto below = static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16);  // toward zero
  const auto above = static_cast<uint16_t>(below + 1);
  const double at = x, low = Widen(Bfloat16{below});
  // Beyond the largest number the next would be 2^128.
  const bool overflows = (above & 0x7fff) == 0x7f80;
  const double high = overflows ? std::copysign(0x1p128, at) : Widen(Bfloat16{above});
  const double to_low = std::fabs(at - low), to_high = std::fabs(high - at);
  if (to_low != to_high) return to_low < to_high ? below : above;
  return below % 2 == 0 ? below : above;
}

class Bfloat16Test : public testing::TestWithParam<KernelIsa> {
 protected:
  void SetUp() override {
    if (GetParam() > best_) GTEST_SKIP() << "this machine lacks " << KernelIsaName(GetParam());
    SetKernelIsaForTest(GetParam());
  }
  void TearDown() override { SetKernelIsaForTest(best_); }

  static std::vector<Bfloat16> Narrowed(const std::vector<float>& floats) {
    std::vector<Bfloat16> narrow(floats.size());
    RT_KERNEL(NarrowToBfloat16)(floats.data(), std::ssize(floats), narrow.data());
    return narrow;
  }

  const KernelIsa best_ = SelectedKernelIsa();
};

TEST_P(Bfloat16Test, EveryValueWidensExactlyAndComesBack) {
  std::vector<Bfloat16> all;
  for (uint32_t i = 0; i < kBfloat16s; ++i) all.push_back(Nth(i));
  std::vector<float> wide(all.size());
  RT_KERNEL(WidenBfloat16)(all.data(), std::ssize(all), wide.data());
  const std::vector<Bfloat16> back = Narrowed(wide);
  for (uint32_t i = 0; i < kBfloat16s; ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), i << 16);
    const bool nan = (i & 0x7fff) > 0x7f80;
    ASSERT_EQ(back[i].bits, nan ? i | 0x40 : i) << std::hex << i;
  }
}

// All floats within two steps of a value, of the middle between two, and of a quarter of the way.
TEST_P(Bfloat16Test, RoundsToTheNearestAndTiesToEven) {
  std::vector<float> floats;
  for (uint32_t i = 0; i < kBfloat16s; ++i) {
    if ((i & 0x7f80) == 0x7f80) continue;  // infinity and NaN
    for (const uint32_t low :
         {0x0, 0x1, 0x2, 0x4000, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0x8002, 0xc000, 0xfffe, 0xffff}) {
      floats.push_back(FromBits(i << 16 | low));
    }
  }
  const std::vector<Bfloat16> narrow = Narrowed(floats);
  for (size_t i = 0; i < floats.size(); ++i) {
    ASSERT_EQ(narrow[i].bits, NearestByDistance(floats[i])) << floats[i];
    ASSERT_EQ(narrow[i].bits, Narrow(floats[i]).bits) << floats[i];
  }
}

TEST_P(Bfloat16Test, KeepsInfinityAndNanWhatTheyAre) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<Bfloat16> infinite = Narrowed({kInfinity, -kInfinity, kLargest, -kLargest});
  EXPECT_EQ(infinite[0].bits, 0x7f80);
  EXPECT_EQ(infinite[1].bits, 0xff80);
  EXPECT_EQ(infinite[2].bits, 0x7f80);
  EXPECT_EQ(infinite[3].bits, 0xff80);
  // Mantissas whose rounding would carry into the exponent or the sign, or that lie below the cut.
  std::vector<float> nans;
  for (const uint32_t mantissa :
       {0x1U, 0x7fffU, 0x8000U, 0xffffU, 0x10000U, 0x3fffffU, 0x400000U, 0x7f8000U, 0x7fffffU}) {
    for (const uint32_t sign : {0U, 0x80000000U}) {
      nans.push_back(FromBits(sign | 0x7f800000 | mantissa));
    }
  }
  const std::vector<Bfloat16> narrow = Narrowed(nans);
  for (size_t i = 0; i < nans.size(); ++i) {
    EXPECT_EQ(narrow[i].bits & 0x7fc0, 0x7fc0) << i;  // a quiet NaN
    EXPECT_EQ(narrow[i].bits >> 15, std::bit_cast<uint32_t>(nans[i]) >> 31) << i;
  }
}

TEST_P(Bfloat16Test, AddRoundsTheSumOnce) {
  Rng rng(RngKey(1).With(kTestStream));
  for (const int64_t n : {0, 1, 7, 15, 16, 17, 33, 1000}) {
    std::vector<Bfloat16> addend(n + 1), sum(n + 1), expected(n + 1);
    for (int64_t i = 0; i <= n; ++i) {
      addend[i] = Narrow(rng.Normal());
      sum[i] = expected[i] = Narrow(rng.Normal());
      if (i < n) expected[i] = Narrow(Widen(sum[i]) + Widen(addend[i]));  // the last is beyond
    }
    RT_KERNEL(AddBfloat16)(addend.data(), n, sum.data());
    EXPECT_EQ(std::memcmp(sum.data(), expected.data(), sum.size() * sizeof(Bfloat16)), 0) << n;
  }
}

TEST_P(Bfloat16Test, PairsOfRowsLieSideBySide) {
  Rng rng(RngKey(1).With(kTestStream));
  for (const int64_t n : {0, 1, 7, 15, 16, 17, 33}) {
    std::vector<float> first(n), second(n);
    for (float& value : first) value = rng.Normal();
    for (float& value : second) value = rng.Normal();
    for (const bool alone : {false, true}) {
      std::vector<Bfloat16> pairs(2 * n + 1, {0x1234});
      RT_KERNEL(PairBfloat16Rows)
      (first.data(), alone ? nullptr : second.data(), n, pairs.data());
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_EQ(pairs[2 * i].bits, Narrow(first[i]).bits) << i;
        EXPECT_EQ(pairs[2 * i + 1].bits, alone ? 0 : Narrow(second[i]).bits) << i;
      }
      EXPECT_EQ(pairs[2 * n].bits, 0x1234);  // beyond
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OnEach, Bfloat16Test,
                         testing::Values(KernelIsa::kBaseline, KernelIsa::kAvx2,
                                         KernelIsa::kAvx512),
                         [](const auto& info) { return std::string(KernelIsaName(info.param)); });

}  // namespace
}  // namespace ringtail
