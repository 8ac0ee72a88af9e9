#include "dist/planner/decoded_share.h"

#include <algorithm>

#include "core/check.h"

namespace ringtail {

double DecodedShare(int64_t ranks, double epochs, double cached) {
  RT_CHECK(ranks >= 1 && epochs > 0 && cached >= 0 && cached <= 1, "a run has ranks and epochs");
  constexpr double kAllMet = 1e-6;
  const double dealt_to_others = 1 - 1 / static_cast<double>(ranks);
  double decoded = 0, left = epochs;
  for (double not_met = 1; left > 0 && not_met > std::max(1 - cached, kAllMet); left -= 1) {
    decoded += std::min(left, 1.0) * not_met;
    not_met *= dealt_to_others;
  }
  decoded += std::max(left, 0.0) * (1 - cached);  // the cache is full, or has everything
  return decoded / epochs;
}

double DecodedShareOfShard(int64_t ranks, double epochs, double cached) {
  return DecodedShare(1, epochs, std::min(1.0, static_cast<double>(ranks) * cached));
}

}  // namespace ringtail
