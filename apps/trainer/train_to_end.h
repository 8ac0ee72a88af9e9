// TrainToEnd: trains a run to its end in one world, through as many generations as that takes.
//
//   Trainer::Create(run, point, world)  -> Train --> outcome
//            ^                               |
//            |                               | the ranks differ, and it is known which is wrong
//            `-- last agreed checkpoint <----'
//
// After train.freeze_epochs the run continues in a generation in which all layers train: its state is
// kept in memory, and with it what compression has not sent; the optimizer's of the layers that
// were frozen starts at zero. Going back is what --resume does: all ranks start from the last
// checkpoint that they agreed on and repeat the steps since, so that the bits are those of a run
// that was never disturbed. The same rank wrong a second time ends the run, as does any difference
// with dist.on_disagreement STOP. Thread-safety: the trainer thread.
#ifndef RINGTAIL_APPS_TRAINER_TRAIN_TO_END_H_
#define RINGTAIL_APPS_TRAINER_TRAIN_TO_END_H_

#include <memory>

#include "apps/trainer/trainer.h"
#include "apps/trainer/training_outcome.h"
#include "core/status.h"

namespace ringtail {

// All ranks. `*trainer` is that of the last generation afterwards; null if going back has failed
// half way. An error only if the run cannot continue, or its result could not be written; the other
// ranks have been told. Rank 0 has then written a checkpoint of the last whole step, unless the
// ranks differ.
StatusOr<TrainingOutcome> TrainToEnd(std::unique_ptr<Trainer>* trainer);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_TRAIN_TO_END_H_
