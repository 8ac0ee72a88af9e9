// The state of a run whose ranks have layers of their own, as one whole: what a checkpoint is, so that
// any number of ranks continues from it, with any cut, or without.
//
//   stage 0   conv1, ...  |             checkpoint: the tensors of all layers
//   stage 1   conv5, ...  | Gather ->
//   stage 2   fc, loss    | <- Scatter
//
// The first pipeline speaks for all: replicas of a stage hold the same.
// What others hold lies in a file without a name meanwhile (core/storage/scratch_file.h): the rank that
// gathers need not have the memory for all of it.
// Thread-safety: the trainer thread; all ranks.
// Errors: those of the world.
#ifndef RINGTAIL_APPS_TRAINER_PIPELINE_STAGE_STATE_H_
#define RINGTAIL_APPS_TRAINER_PIPELINE_STAGE_STATE_H_

#include <span>
#include <string>
#include <vector>

#include "apps/trainer/checkpoint/training_state.h"
#include "apps/trainer/pipeline/stage_messages.h"
#include "apps/trainer/sharding/whole_state.h"
#include "core/status.h"
#include "core/storage/safetensors_writer.h"

namespace ringtail {

// `own`: f32. On rank 0, which leads: those of the other stages, on the file system of `folder`;
// elsewhere nothing.
StatusOr<OwnedTensors> GatherStages(StageLink* link, std::span<const TensorView> own,
                                    const std::string& folder);

// Gives each rank the tensors of its layers of what `source_rank` finds (sharding/whole_state.h);
// nothing if `whole` is empty there.
Status ScatterStages(StageLink* link, int source_rank, const FindWhole& whole,
                     TrainingState* state);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_PIPELINE_STAGE_STATE_H_
