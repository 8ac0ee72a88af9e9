#include "dist/compression/codecs/magnitude.h"

#include <array>

#include "core/check.h"
#include "dist/compression/kernels/magnitudes.h"

namespace ringtail {

int64_t CountAtLeast(std::span<const float> a, uint32_t magnitude) {
  return RT_KERNEL(CountReaching)(a.data(), std::ssize(a), static_cast<int32_t>(magnitude));
}

void FindAtLeast(std::span<const float> a, uint32_t magnitude, std::span<int32_t> places) {
  RT_KERNEL(FindReaching)
  (a.data(), std::ssize(a), static_cast<int32_t>(magnitude), places.data());
}

KthMagnitude KthLargest(std::span<const uint32_t> magnitudes, int64_t k) {
  RT_CHECK(k >= 1 && k <= static_cast<int64_t>(magnitudes.size()),
           "k is between 1 and the number of elements");
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
  RT_CHECK(size >= 1 && size <= n, "a sample has at most all elements");
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
