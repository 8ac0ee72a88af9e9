// UpdateCounts: what has happened on a server since it was asked last, for metrics.
// Thread-safety: a value.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_WIRE_UPDATE_COUNTS_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_WIRE_UPDATE_COUNTS_H_

#include <cstdint>

#include "dist/parameter_server/staleness_statistics.h"

namespace ringtail {

struct UpdateCounts {
  int64_t version = 0, images = 0;  // now: updates, and images that were applied
  int64_t rows = 0;                 // of pushes that were taken, as are the next two
  double loss_sum = 0;
  int64_t correct = 0;
  StalenessStatistics staleness;  // of the same
  int64_t discarded = 0;          // pushes that were too old, or whose version was gone
  int64_t refused = 0;            // pushes that were not finite, or of no known worker or version
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_WIRE_UPDATE_COUNTS_H_
