// LargestPlaces: where the k elements of largest |a| are, exactly.
//
//   1. sample   about one element in 128, but at least 512; the threshold is where a little more than k / n of the
//               sample lies above it, so that almost surely at least k of all elements do
//   2. scan     counts and then collects the elements above the threshold: the survivors, a few
//               more than k
//   3. select   the exact k-th among the survivors, and among its equals the first ones
//
// Only the scan sees all elements, and it is vectorised; sorting all of them, or nth_element, costs
// ten times as much. If fewer than k survive, the threshold is lowered: the result does not depend
// on the sample, only the time does. Of elements that are mostly 0, all others survive, and the first
// zeros are put among them if these are fewer than k.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_LARGEST_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_LARGEST_H_

#include <cstdint>
#include <span>
#include <vector>

namespace ringtail {

// ceil(density n), at least 1 and at most n; 0 if n is 0. 0 < density <= 1. What exceeds a whole
// number by less than a part in 10^12 is that number: 7% of 100 is 7, although 0.07 * 100 is a bit
// more in double, and a density whose last bit differs between machines gives the same on all.
int64_t ShareOf(double density, int64_t n);

// Exactly the k first elements of `a` in the order of falling |a| (NaN before all numbers) and, if
// equal, of their places; ascending places. 0 <= k <= a.size() < 2^31.
// Thread-safety: any number of threads, each with its own `places`. Reuse `places`: neither it nor
// the scratch memory of each thread is then allocated again.
void LargestPlaces(std::span<const float> a, int64_t k, std::vector<int32_t>* places);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_LARGEST_H_
