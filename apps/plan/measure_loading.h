// Processor time that input threads need for an image: on a machine whose cores all compute, that is
// time in which they do not.
// Thread-safety: the trainer thread. Cost: the first images are read, decoded and augmented, and
// augmented once more.
#ifndef RINGTAIL_APPS_PLAN_MEASURE_LOADING_H_
#define RINGTAIL_APPS_PLAN_MEASURE_LOADING_H_

#include <cstdint>

#include "apps/config/run_config.h"
#include "apps/trainer/training_data.h"
#include "core/status.h"

namespace ringtail {

// All 0 if there are cores that do not compute: input threads then take those.
struct LoadingCost {
  double load_s = 0;        // of one core, for an image that is kept decoded
  double decode_s = 0;      // more, for one that is not
  double cached_share = 0;  // of the images to train on, those that data.cache_mib has room for
};

// Of images of `image_size` pixels. `ranks_here`: on this host, of which each has its share of the
// cores.
StatusOr<LoadingCost> MeasureLoading(const RunConfig& config, const TrainingData& data,
                                     int64_t image_size, int ranks_here);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_MEASURE_LOADING_H_
