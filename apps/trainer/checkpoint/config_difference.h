// Which fields of a config may change when a run is resumed.
//
// A resumed run must continue to the same bits, so the fields that the weights depend on must not
// change: network, optimizer, batch, seed, image sizes, augmentation, split, number of epochs.
// These may change: where and how it runs, that is data.path and layout (the list of images and
// labels, and the contents of the files, are compared by fingerprints), workers, prefetching,
// caches, threads (other sums, other last bits: see numerics.h); evaluation, logging, checkpoints,
// on_nan, until_accuracy, patience; how the precision was found, but not which; whether AUTO is to
// plan, which it does at the first step only, but not what it planned; and `epochs`, if the schedule
// does not depend on the end of the run (constant, step, multi_step).
//
// Some only say how a run began: the precision that AUTO took, the weights that were read, and the
// epochs that its rate is for. A run that continues keeps its own (KeepBeginning): --weights need
// not be repeated, and a rate that depends on them or on the length of the run
// (optim.batch_scaling.reference_images) stays as it is.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_CONFIG_DIFFERENCE_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_CONFIG_DIFFERENCE_H_

#include "apps/run.pb.h"
#include "core/status.h"

namespace ringtail {

// Writes into the config with which a run continues how it began. (A rank that does not reach the
// checkpoint hears it from one that does: decide_precision.h, generation.h.)
void KeepBeginning(const RunConfig& saved, RunConfig* now);

// OK, or FailedPrecondition with the fields that differ: "train.batch: 64 -> 32". Of how the run
// began, what its rate depends on must be the same.
Status CheckResumable(const RunConfig& saved, const RunConfig& now);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_CONFIG_DIFFERENCE_H_
