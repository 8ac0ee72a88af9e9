// The median of measured times: one that was disturbed does not count.
#ifndef RINGTAIL_CORE_MEDIAN_H_
#define RINGTAIL_CORE_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace ringtail {

// Of an even number the upper one of the two in the middle; 0 if there are none.
inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t middle = values.size() / 2;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(middle));
  return values[middle];
}

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MEDIAN_H_
