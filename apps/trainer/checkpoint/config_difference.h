// Which fields of a config may change when a run is resumed, and the difference in words.
//
// A resumed run must go on to the same bits, so what the weights depend on may not change: network,
// optimizer, batch, seed, image sizes, augmentation, split, number of epochs. Free to change is
// where and how it runs: data.path and layout (the list of images and labels, and what is in
// the files, are compared by fingerprints), workers, prefetching, caches, threads (other sums, other
// last bits: see numerics.h); what is watched: evaluation, logging,
// checkpoints, on_nan, until_accuracy; and `epochs`, but only with a schedule that does not look at
// the end (constant, step, multi_step).
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_CONFIG_DIFFERENCE_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_CONFIG_DIFFERENCE_H_

#include "apps/run.pb.h"
#include "core/status.h"

namespace ringtail {

// OK, or FailedPrecondition with the fields that differ: "train.batch: 64 -> 32".
Status CheckResumable(const RunConfig& saved, const RunConfig& now);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_CONFIG_DIFFERENCE_H_
