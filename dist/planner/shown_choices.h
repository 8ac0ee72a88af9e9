// The ways to train together that have been shown to reach one host's accuracy: what dist.plan: AUTO
// chooses from, and what a run is told of. README.md says what was measured.
//
//   scheme    dense, or linear8 for what is exchanged after rounds
//   rounds    up to kMostShownPeriod local steps
//   batch     of all ranks: one host's, or twice that
//
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_PLANNER_SHOWN_CHOICES_H_
#define RINGTAIL_DIST_PLANNER_SHOWN_CHOICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "dist/planner/search.h"

namespace ringtail {

inline constexpr int kMostShownPeriod = 8;

// The schemes beside dense, by the names of facts (planner.proto).
std::vector<std::string> ShownSchemes();

// `batch`: of one host; `images`: of an epoch, which a larger batch must not leave with too few
// steps (optim/batch_scaling.h), 0 if not known.
SearchSpace ShownSpace(int64_t batch, int64_t images);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_SHOWN_CHOICES_H_
