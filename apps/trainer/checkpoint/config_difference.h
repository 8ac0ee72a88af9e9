// Which fields of a config may change when a run is resumed.
//
// A resumed run must continue to the same bits, so the fields that the weights depend on must not
// change: network, optimizer, batch, seed, image sizes, augmentation, split, number of epochs.
// These may change: where and how it runs, that is data.path and layout (the list of images and
// labels, and the contents of the files, are compared by fingerprints), workers, prefetching,
// caches, threads (other sums, other last bits: see numerics.h); evaluation, logging, checkpoints,
// on_nan, until_accuracy, patience; how the precision was found, but not which; weights, which are
// read when a run begins; and `epochs`, if the
// schedule does not depend on the end of the run (constant, step, multi_step). Thread-safety:
// functions without state.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_CONFIG_DIFFERENCE_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_CONFIG_DIFFERENCE_H_

#include "apps/run.pb.h"
#include "core/status.h"

namespace ringtail {

// OK, or FailedPrecondition with the fields that differ: "train.batch: 64 -> 32".
Status CheckResumable(const RunConfig& saved, const RunConfig& now);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_CONFIG_DIFFERENCE_H_
