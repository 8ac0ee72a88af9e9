// Processor time that input threads need for an image: on a machine whose cores all compute, that is
// time in which they do not.
// Thread-safety: the trainer thread. Cost: the first images are read, decoded and augmented twice.
#ifndef RINGTAIL_APPS_PLAN_MEASURE_LOADING_H_
#define RINGTAIL_APPS_PLAN_MEASURE_LOADING_H_

#include <cstdint>

#include "apps/config/run_config.h"
#include "apps/trainer/training_data.h"
#include "core/status.h"

namespace ringtail {

// Seconds of one core for an image of `image_size` pixels, in epochs after the first: what fits into
// the cache (data.cache_mib) is not decoded again. 0 if there are cores that do not compute: input
// threads then take those. `ranks_here`: on this host, of which each has its share of the cores.
StatusOr<double> MeasureLoading(const RunConfig& config, const TrainingData& data,
                                int64_t image_size, int ranks_here);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_MEASURE_LOADING_H_
