// Magnitudes: finding the elements of a gradient that are far from zero, fast.
//
// The bits of a float without its sign, read as an integer, are ordered as |a| is; comparisons of
// them are exact on every machine, and a NaN is larger than all numbers, so that a scheme sends it
// (and the run notices) instead of hiding it in a residual.
//
//   a             0.5        -3          0       1
//   Magnitude     3f000000   40400000    0       3f800000     in hexadecimal
//   at least 1               place 1             place 3
//
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_MAGNITUDE_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_MAGNITUDE_H_

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace ringtail {

inline uint32_t Magnitude(float a) { return std::bit_cast<uint32_t>(a) & 0x7fffffff; }

// Number of elements, of fewer than 2^31, that have at least this magnitude. Cost: one vectorised
// pass.
int64_t CountAtLeast(std::span<const float> a, uint32_t magnitude);

// Their places, ascending. `places` has the size that CountAtLeast returns. Cost: one vectorised
// pass, and a step for each of them.
void FindAtLeast(std::span<const float> a, uint32_t magnitude, std::span<int32_t> places);

// The k-th largest of `magnitudes`, and the number of the k largest that equal it.
struct KthMagnitude {
  uint32_t magnitude = 0;
  int64_t equal = 0;
};
// 1 <= k <= magnitudes.size(). Cost: three passes, whatever the numbers (a radix selection: finds
// the upper 11 bits of the answer by counting, then the next 10, then the last 10).
KthMagnitude KthLargest(std::span<const uint32_t> magnitudes, int64_t k);

// Magnitudes of `size` elements, one from each of as many equal parts of `a`, at a place that
// varies, so that no period of the gradient (a filter's rows) is sampled in step. The same
// places for the same sizes. 1 <= size <= a.size().
std::vector<uint32_t> SampleMagnitudes(std::span<const float> a, int64_t size);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_MAGNITUDE_H_
