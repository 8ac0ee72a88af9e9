// The outer optimizer's momentum in a checkpoint: the same on all ranks, in the file that rank 0
// writes, as "local.outer.<block>.<parameter>".
// Thread-safety: the trainer thread, between two exchanges.
#ifndef RINGTAIL_APPS_TRAINER_LOCAL_OUTER_STATE_H_
#define RINGTAIL_APPS_TRAINER_LOCAL_OUTER_STATE_H_

#include <vector>

#include "apps/trainer/checkpoint/resume_point.h"
#include "apps/trainer/local/local_round.h"
#include "apps/trainer/training_world.h"
#include "core/status.h"
#include "core/storage/safetensors_writer.h"

namespace ringtail {

std::vector<TensorView> OuterTensors(LocalRound* round);
// All ranks: what the source rank's `point` has; zero where it has nothing.
Status RestoreOuterState(TrainingWorld* world, const ResumePoint& point, LocalRound* round);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_LOCAL_OUTER_STATE_H_
