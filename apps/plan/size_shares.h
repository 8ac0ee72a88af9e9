// How much of a run trains which size of images (train.phase): the planner's shares (dist/planner/image_sizes.h).
// Thread-safety: a pure function.
#ifndef RINGTAIL_APPS_PLAN_SIZE_SHARES_H_
#define RINGTAIL_APPS_PLAN_SIZE_SHARES_H_

#include <cstdint>
#include <vector>

#include "apps/run.pb.h"

namespace ringtail {

struct SizeShare {
  int64_t image_size = 0;
  double share = 1;  // of all epochs, > 0; in all 1
  double from_epoch = 0;

  bool operator==(const SizeShare&) const = default;
};

// In the order in which sizes are trained first. Of a config that has been checked.
std::vector<SizeShare> SizeSharesOf(const RunConfig& config);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_SIZE_SHARES_H_
