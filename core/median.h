// The median of measured times, and by how much they vary; one disturbed measurement changes neither.
// Thread-safety: a pure function.
#ifndef RINGTAIL_CORE_MEDIAN_H_
#define RINGTAIL_CORE_MEDIAN_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace ringtail {

// Of an even count, the upper of the two middle values; 0 if there are none.
inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t middle = values.size() / 2;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(middle));
  return values[middle];
}

// The standard deviation of positive values as a share of their median, by the median of their distances
// from it (Hampel 1974, "The Influence Curve and Its Role in Robust Estimation"). 0 if there are none.
inline double RelativeDeviation(const std::vector<double>& values) {
  if (values.empty()) return 0;
  constexpr double kOfNormal = 1.4826;
  const double median = Median(values);
  std::vector<double> distances = values;
  for (double& value : distances) value = std::fabs(value - median);
  return kOfNormal * Median(std::move(distances)) / median;
}

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MEDIAN_H_
