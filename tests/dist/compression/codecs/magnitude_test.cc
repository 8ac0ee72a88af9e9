// Finds the elements of largest magnitude; the oracle sorts all of them.
#include "dist/compression/codecs/magnitude.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/random.h"
#include "dist/compression/codecs/largest.h"
#include "tests/dist/compression/codec_runner.h"
#include "tests/dist/compression/sparse_gradients.h"

namespace ringtail {
namespace {

// The order of the header: NaN, then by |a|; among equals, by place.
std::vector<int32_t> LargestBySorting(const std::vector<float>& a, int64_t k) {
  std::vector<int32_t> places(a.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](int32_t i, int32_t j) {
    if (std::isnan(a[i]) || std::isnan(a[j])) return std::isnan(a[i]) && !std::isnan(a[j]);
    return std::fabs(static_cast<double>(a[i])) > std::fabs(static_cast<double>(a[j]));
  });
  places.resize(k);
  std::sort(places.begin(), places.end());
  return places;
}

void ExpectLargest(const std::vector<float>& a, int64_t k) {
  std::vector<int32_t> places{1, 2, 3};  // its contents do not matter
  LargestPlaces(a, k, &places);
  EXPECT_EQ(places, LargestBySorting(a, k)) << k << " of " << a.size();
}

TEST(Magnitude, OrdersAsAbsoluteValues) {
  const float ordered[] = {0, 1e-45f, -1e-40f, 1e-38f, -0.5f, 1, -1e38f, INFINITY, -NAN};
  for (size_t i = 1; i < std::size(ordered); ++i) {
    EXPECT_LT(Magnitude(ordered[i - 1]), Magnitude(ordered[i])) << ordered[i];
  }
  EXPECT_EQ(Magnitude(-0.0f), Magnitude(0));
}

TEST(Magnitude, FindsExactlyThoseThatReachTheThreshold) {
  for (const int64_t n : {0, 1, 15, 16, 17, 100, 4096, 4097, 10'000}) {
    auto a = NormalGradient(n, 1);
    if (n > 20) a[n - 2] = -NAN;  // larger than all
    if (n > 20) a[13] = -INFINITY;
    for (const float threshold : {0.0f, 1e-40f, 0.5f, 2.5f, 3.5f, 100.0f, INFINITY}) {
      std::vector<int32_t> expected;
      for (int64_t i = 0; i < n; ++i) {
        if (!(std::fabs(a[i]) < threshold)) expected.push_back(static_cast<int32_t>(i));
      }
      for (const KernelIsa isa : MachineIsas()) {
        SetKernelIsaForTest(isa);
        const int64_t count = CountAtLeast(a, Magnitude(threshold));
        ASSERT_EQ(count, static_cast<int64_t>(expected.size())) << n << ", " << threshold;
        std::vector<int32_t> places(count);
        FindAtLeast(a, Magnitude(threshold), places);
        EXPECT_EQ(places, expected) << n << ", " << threshold << ", " << KernelIsaName(isa);
      }
    }
  }
}

TEST(Magnitude, KthLargestIsThatOfASort) {
  Rng random(RngKey(2).With(kTestStream));
  for (const uint64_t range : {1, 3, 100, 1 << 20, 1 << 30}) {
    for (const int64_t n : {1, 500, 1500}) {
      std::vector<uint32_t> magnitudes(n);
      for (uint32_t& m : magnitudes) m = static_cast<uint32_t>(random.Below(range)) * 2 + 1;
      auto sorted = magnitudes;
      std::sort(sorted.rbegin(), sorted.rend());
      for (int64_t k = 1; k <= n; k += 7) {
        const KthMagnitude kth = KthLargest(magnitudes, k);
        EXPECT_EQ(kth.magnitude, sorted[k - 1]);
        EXPECT_EQ(kth.equal, std::count(sorted.begin(), sorted.begin() + k, sorted[k - 1]));
      }
    }
  }
}

TEST(Magnitude, ASampleTakesOneElementFromEachPart) {
  std::vector<float> a(1000);
  std::iota(a.begin(), a.end(), 0.0f);
  const auto sample = SampleMagnitudes(a, 70);
  ASSERT_EQ(sample.size(), 70);
  for (size_t i = 0; i < sample.size(); ++i) {
    EXPECT_GE(sample[i], Magnitude(static_cast<float>(14 * i)));
    EXPECT_LT(sample[i], Magnitude(static_cast<float>(14 * i + 14)));
  }
  EXPECT_EQ(SampleMagnitudes(a, 1000).size(), 1000);
}

TEST(Largest, IsWhatSortingFinds) {
  for (const int64_t n : {1, 2, 17, 1000, 2'047, 2'048, 16'384, 100'000}) {
    const auto a = NormalGradient(n, 5);
    for (const double share : {0.0, 0.0001, 0.001, 0.01, 0.1, 0.25, 0.499, 0.5, 0.51, 1.0}) {
      ExpectLargest(a, static_cast<int64_t>(std::ceil(share * static_cast<double>(n))));
    }
  }
}

TEST(Largest, TakesTheFirstAmongEquals) {
  Rng random(RngKey(6).With(kTestStream));
  for (const uint64_t values : {1, 2, 5}) {
    std::vector<float> a(50'000);
    for (float& x : a) {
      x = static_cast<float>(random.Below(values)) * (random.Below(2) == 0 ? 1.0f : -1.0f);
    }
    for (const int64_t k : {1, 500, 12'500, 24'999, 50'000}) ExpectLargest(a, k);
  }
}

// Gradients that a sample misjudges: nearly all zero, the rest in one place; numbers of all sizes.
TEST(Largest, HoldsForUnusualGradients) {
  std::vector<float> a(100'000);
  for (int i = 0; i < 300; ++i) a[70'000 + i] = static_cast<float>(i % 50);
  for (const int64_t k : {1, 100, 294, 295, 1000, 40'000, 69'999, 70'500}) ExpectLargest(a, k);

  // 0 but for one in 97, as a sum of few payloads; some of the others are the smallest that there are.
  std::ranges::fill(a, 0.0F);
  for (size_t i = 5; i < a.size(); i += 97) a[i] = i % 2 == 0 ? 1e-45F : -3;
  for (const int64_t k : {1, 515, 516, 1030, 1031, 1032, 2000, 49'000, 99'999}) {
    ExpectLargest(a, k);
  }

  Rng random(RngKey(7).With(kTestStream));
  for (float& x : a) x = std::bit_cast<float>(random.Bits());
  for (float& x : a) x = std::isnan(x) ? std::numeric_limits<float>::quiet_NaN() : x;
  a[5] = INFINITY;
  for (const int64_t k : {1, 3, 1000, 40'000}) ExpectLargest(a, k);
}

// The threshold of a periodic gradient is found wrongly by a sample of fixed stride.
TEST(Largest, HoldsForPeriodicGradients) {
  std::vector<float> a(128 * 1000);
  for (size_t i = 0; i < a.size(); ++i) a[i] = i % 128 == 0 ? 100.0f : 1e-3f * (i % 97);
  for (const int64_t k : {10, 1000, 1001, 30'000}) ExpectLargest(a, k);
}

// All large elements are where the sample looks, so that it overestimates the others.
TEST(Largest, HoldsIfTheSampleIsWrong) {
  constexpr int64_t kElements = 128 * 1024, kSampled = kElements / 128;
  std::vector<float> a(kElements);
  std::iota(a.begin(), a.end(), 0.0f);
  const auto sampled = SampleMagnitudes(a, kSampled);
  const auto noise = NormalGradient(kElements, 8);
  for (int64_t i = 0; i < kElements; ++i) a[i] = 1e-3f * noise[i];
  for (const uint32_t place : sampled) {
    const auto i = static_cast<int64_t>(std::bit_cast<float>(place));
    a[i] = noise[i] + 100;
  }
  for (const int64_t k : {1, 100, 500, 1000, 1024, 1025, 5000, 50'000}) ExpectLargest(a, k);
}

TEST(Largest, SharesRoundUp) {
  EXPECT_EQ(ShareOf(0.3, 6), 2);
  EXPECT_EQ(ShareOf(0.001, 10), 1);
  EXPECT_EQ(ShareOf(1, 10), 10);
  EXPECT_EQ(ShareOf(0.25, 4), 1);
  EXPECT_EQ(ShareOf(0.5, 0), 0);
  EXPECT_EQ(ShareOf(0.07, 100), 7);
  EXPECT_EQ(ShareOf(0.07 + 1e-9, 100), 8);
  EXPECT_EQ(ShareOf(1, INT32_MAX), INT32_MAX);
}

}  // namespace
}  // namespace ringtail
