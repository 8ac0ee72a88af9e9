#include "apps/plan/size_shares.h"

#include <algorithm>

#include "apps/config/run_config.h"

namespace ringtail {
namespace {

// Where the phase of each of TrainingImageSizes begins, and the end of the last one.
std::vector<double> BoundsOf(const RunConfig& config) {
  const auto& phases = config.train().phase();
  std::vector<double> bounds;
  if (phases.empty() || phases[0].from_epoch() > 0) bounds.push_back(0);
  for (const PhaseConfig& phase : phases) bounds.push_back(phase.from_epoch());
  bounds.push_back(config.train().epochs());
  return bounds;
}

}  // namespace

std::vector<SizeShare> SizeSharesOf(const RunConfig& config) {
  const std::vector<int64_t> sizes = TrainingImageSizes(config);
  const std::vector<double> bounds = BoundsOf(config);
  const double epochs = config.train().epochs();
  std::vector<SizeShare> shares;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const double share = (std::min(bounds[i + 1], epochs) - bounds[i]) / epochs;
    if (share <= 0) continue;
    const auto same = std::ranges::find(shares, sizes[i], &SizeShare::image_size);
    if (same == shares.end()) {
      shares.push_back({.image_size = sizes[i], .share = share, .from_epoch = bounds[i]});
    } else {
      same->share += share;
    }
  }
  return shares;
}

}  // namespace ringtail
