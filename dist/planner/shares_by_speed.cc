#include "dist/planner/shares_by_speed.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/round.h"

namespace ringtail {
namespace {

constexpr double kRounding = 1e-9;  // of a share that is a whole number but for rounding

// Of a rank with an even share: images of each of its parts.
double PartOf(int64_t even, int64_t parts) { return static_cast<double>(CeilDivide(even, parts)); }

}  // namespace

SharesBySpeed SharesBySpeed::Of(std::span<const double> slowness) {
  RT_CHECK(!slowness.empty(), "shares are those of hosts");
  const auto [fastest, slowest] = std::ranges::minmax(slowness);
  if (slowest <= kAlike * fastest) return {};
  double speeds = 0;
  for (const double s : slowness) speeds += 1 / s;
  const double mean = static_cast<double>(slowness.size()) / speeds;
  return {.slowest = mean / slowest, .fastest = mean / fastest};
}

int64_t ImagesOfSlowest(const SharesBySpeed& shares, int64_t even, int64_t parts) {
  if (!shares.differ()) return even;
  return parts * std::max<int64_t>(1, std::llround(PartOf(even, parts) * shares.slowest));
}

int64_t ImagesOfFastest(const SharesBySpeed& shares, int64_t even, int64_t parts) {
  if (!shares.differ()) return even;
  const double images = std::ceil(PartOf(even, parts) * shares.fastest - kRounding);
  return parts * static_cast<int64_t>(images);
}

}  // namespace ringtail
