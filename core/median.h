// The median of measured times, which one disturbed measurement does not change.
// Thread-safety: a pure function.
#ifndef RINGTAIL_CORE_MEDIAN_H_
#define RINGTAIL_CORE_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace ringtail {

// Of an even count, the upper of the two middle values; 0 if there are none.
inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t middle = values.size() / 2;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(middle));
  return values[middle];
}

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MEDIAN_H_
