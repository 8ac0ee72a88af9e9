#include "dist/compression/magnitude.h"

#include <algorithm>
#include <array>

#include "core/check.h"

namespace ringtail {
namespace {

// Short enough for sums of 32 bits, so that the compiler counts in as many lanes as it compares.
constexpr int64_t kCountedTogether = 1 << 12;

// Magnitudes have no sign bit: as signed numbers, which vectors compare in one instruction on every
// machine, they have the same order.
inline int32_t SignedMagnitude(float a) { return static_cast<int32_t>(Magnitude(a)); }

int32_t CountInBlock(const float* a, int64_t n, int32_t magnitude) {
  int32_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += SignedMagnitude(a[i]) >= magnitude ? 1 : 0;
  return count;
}

bool AnyInBlock(const float* a, int32_t magnitude) {
  int32_t any = 0;
  for (int64_t i = 0; i < kMagnitudeBlock; ++i) {
    any |= SignedMagnitude(a[i]) >= magnitude ? 1 : 0;
  }
  return any != 0;
}

// Writes every place and keeps those that count: no branch to predict wrongly. Returns the end.
int32_t* AppendPlaces(const float* a, int64_t begin, int64_t end, int32_t magnitude, int32_t* to) {
  for (int64_t i = begin; i < end; ++i) {
    *to = static_cast<int32_t>(i);
    to += SignedMagnitude(a[i]) >= magnitude ? 1 : 0;
  }
  return to;
}

}  // namespace

int64_t CountAtLeast(std::span<const float> a, uint32_t magnitude) {
  const auto n = static_cast<int64_t>(a.size());
  int64_t count = 0;
  for (int64_t begin = 0; begin < n; begin += kCountedTogether) {
    count += CountInBlock(&a[begin], std::min(kCountedTogether, n - begin),
                          static_cast<int32_t>(magnitude));
  }
  return count;
}

void FindAtLeast(std::span<const float> a, uint32_t magnitude, std::span<int32_t> places) {
  const auto n = static_cast<int64_t>(a.size());
  const auto least = static_cast<int32_t>(magnitude);
  int32_t* to = places.data();
  int64_t begin = 0;
  for (; begin + kMagnitudeBlock <= n; begin += kMagnitudeBlock) {
    if (AnyInBlock(&a[begin], least)) {
      to = AppendPlaces(a.data(), begin, begin + kMagnitudeBlock, least, to);
    }
  }
  AppendPlaces(a.data(), begin, n, least, to);
}

KthMagnitude KthLargest(std::span<const uint32_t> magnitudes, int64_t k) {
  RT_CHECK(k >= 1 && k <= static_cast<int64_t>(magnitudes.size()), "there is no k-th");
  uint32_t known = 0;  // the upper bits of the answer
  int known_from = 31;
  for (const int shift : {20, 10, 0}) {
    std::array<int64_t, 1 << 11> counts{};
    const uint32_t digits = uint32_t{1} << (known_from - shift);
    for (const uint32_t magnitude : magnitudes) {
      if (magnitude >> known_from == known >> known_from) {
        ++counts[(magnitude >> shift) & (digits - 1)];
      }
    }
    uint32_t digit = digits - 1;
    while (k > counts[digit]) k -= counts[digit--];
    known |= digit << shift;
    known_from = shift;
  }
  return {.magnitude = known, .equal = k};
}

std::vector<uint32_t> SampleMagnitudes(std::span<const float> a, int64_t size) {
  const auto n = static_cast<int64_t>(a.size());
  RT_CHECK(size >= 1 && size <= n, "a sample is part of the whole");
  const int64_t part = n / size;
  std::vector<uint32_t> sample(size);
  for (int64_t i = 0; i < size; ++i) {
    // Knuth's multiplicative hash: the upper bits of i times 2^32 / the golden ratio.
    const uint32_t hash = static_cast<uint32_t>(i) * 2654435761u;
    sample[i] = Magnitude(a[i * part + (static_cast<int64_t>(hash >> 8) * part >> 24)]);
  }
  return sample;
}

}  // namespace ringtail
