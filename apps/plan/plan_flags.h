// What sets a plan (dist.plan: AUTO) for a run that was started without one, and with which batch.
//
//   without a plan   train.batch is of each rank:   8 ranks x 256 = 2,048 images in a step
//   with a plan      train.batch is of all ranks:                     256
//
// A plan divides the batch of one host, since that is how its choices were shown to be as accurate as
// one host (dist/planner/shown_choices.h): a run whose batch has grown with its ranks is not told to
// keep that, which costs accuracy. A run whose batch was divided by hand keeps it:
//
//   run                                      batch of one host
//   train.batch 256 on 8 ranks: 2,048        256     the config's
//   train.batch  32 on 8 ranks:   256        256     what the rate was found with
//   train.batch  32 on 4 ranks:   128        128     no more than the run has
//   train.batch  64 on 8 ranks:   512        256
//
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_PLAN_PLAN_FLAGS_H_
#define RINGTAIL_APPS_PLAN_PLAN_FLAGS_H_

#include <cstdint>
#include <string>

#include "apps/run.pb.h"

namespace ringtail {

// Of a run with `global_batch` images of all ranks in a step: train.batch, or the batch that its rate
// was found with (optim.batch_scaling.reference_batch) if that is larger, but at most `global_batch`.
int64_t BatchOfOneHost(const RunConfig& config, int64_t global_batch);

// "--plan auto --set train.batch=256 --set dist.local={}": a plan that divides `batch` images, beside the
// flags of the run as it is; without what AUTO chooses itself (dropped_ways.h), and in parts that are
// equal. `local_batch`: the run has --local-batch, which a plan refuses.
std::string PlanFlags(const RunConfig& config, int64_t batch, bool local_batch);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_PLAN_FLAGS_H_
