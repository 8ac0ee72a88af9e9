#include "dist/compression/codecs/largest.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/check.h"
#include "dist/compression/codecs/magnitude.h"

namespace ringtail {
namespace {

constexpr int64_t kSampledPart = 128;  // one element in 128, but at least
constexpr int64_t kLeastSample = 512;
// Fewer elements all survive: to sample them would cost as much as to look at all.
constexpr int64_t kSmall = 4 * kLeastSample;

// The largest threshold known to have at least k elements above it; their number in *count.
uint32_t Threshold(std::span<const float> a, int64_t k, int64_t* count) {
  const auto n = static_cast<int64_t>(a.size());
  *count = n;
  if (n < kSmall || k > n / 2) return 0;
  const std::vector<uint32_t> sample =
      SampleMagnitudes(a, std::max(n / kSampledPart, kLeastSample));
  const auto size = static_cast<int64_t>(sample.size());
  // How many of the k largest are in the sample is binomial, of variance below its mean: four
  // standard deviations more fail once in 30,000 times.
  const double expected =
      static_cast<double>(k) * static_cast<double>(size) / static_cast<double>(n);
  auto rank = static_cast<int64_t>(expected + 4 * std::sqrt(expected) + 4);
  for (; rank <= size; rank *= 2) {
    const uint32_t threshold = KthLargest(sample, rank).magnitude;
    *count = CountAtLeast(a, threshold);
    if (*count >= k) return threshold;
  }
  *count = n;
  return 0;
}

// `places` are those of all elements that are not 0, ascending, and get the first zeros among them until they are k.
void AddFirstZeros(int64_t k, std::vector<int32_t>* places) {
  int64_t end = k - std::ssize(*places), below = 0;
  for (; below < std::ssize(*places) && (*places)[below] < end; ++below) ++end;
  places->erase(places->begin(), places->begin() + below);
  places->insert(places->begin(), end, 0);
  std::iota(places->begin(), places->begin() + end, 0);  // every place before `end`
}

}  // namespace

int64_t ShareOf(double density, int64_t n) {
  RT_CHECK(density > 0 && density <= 1, "a density is above 0 and at most 1");
  if (n == 0) return 0;
  const double share = density * static_cast<double>(n) * (1 - 1e-12);
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(share)), 1, n);
}

void LargestPlaces(std::span<const float> a, int64_t k, std::vector<int32_t>* places) {
  RT_CHECK(a.size() <= INT32_MAX, "places have 31 bits");
  RT_CHECK(k >= 0 && k <= static_cast<int64_t>(a.size()), "k is at most the number of elements");
  places->clear();
  if (k == 0) return;
  int64_t count = 0;
  uint32_t threshold = Threshold(a, k, &count);
  if (threshold == 0) {  // and yet most may be 0, as in a sum of a few payloads
    threshold = 1;
    count = CountAtLeast(a, threshold);
  }
  places->resize(count);
  FindAtLeast(a, threshold, *places);
  if (count <= k) return AddFirstZeros(k, places);

  // Codecs have no state, and the threads that encode live long: they reuse their scratch memory.
  static thread_local std::vector<uint32_t> magnitudes;
  magnitudes.resize(count);
  for (int64_t i = 0; i < count; ++i) magnitudes[i] = Magnitude(a[(*places)[i]]);
  KthMagnitude kth = KthLargest(magnitudes, k);
  int64_t kept = 0;
  for (int64_t i = 0; i < count; ++i) {
    const bool equal = magnitudes[i] == kth.magnitude && kth.equal > 0;
    kth.equal -= equal ? 1 : 0;
    (*places)[kept] = (*places)[i];
    kept += magnitudes[i] > kth.magnitude || equal ? 1 : 0;
  }
  RT_CHECK(kept == k, "k elements remain");
  places->resize(k);
}

}  // namespace ringtail
