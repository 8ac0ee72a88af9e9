#include "apps/evaluation/wilson_interval.h"

#include <algorithm>
#include <cmath>

namespace ringtail {

Interval WilsonInterval(int64_t correct, int64_t images) {
  if (images == 0) return {};
  constexpr double z = 1.959963984540054;  // the 97.5 % quantile of the normal distribution
  const auto n = static_cast<double>(images);
  const double p = static_cast<double>(correct) / n;
  const double centre = p + z * z / (2 * n);
  const double half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  const double scale = 1 + z * z / n;
  return {.low = std::max(0.0, (centre - half) / scale),
          .high = std::min(1.0, (centre + half) / scale)};
}

}  // namespace ringtail
