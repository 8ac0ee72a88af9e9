// TrainingProgress: how far a run has come.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_TRAINING_PROGRESS_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_TRAINING_PROGRESS_H_

#include <cstdint>

namespace ringtail {

struct TrainingProgress {
  int64_t step = 0;            // optimizer steps done
  int64_t evaluated_step = 0;  // of the last evaluation
  int64_t best_step = -1;      // of the best evaluation; -1: none yet
  double best_accuracy = -1;
  double last_accuracy = -1;  // of the last evaluation; -1: none, or not known (older checkpoints)
  int64_t skipped_steps = 0;  // left out because a gradient was not finite; local ones by each rank
  int64_t skipped_in_a_row = 0;
  int64_t unimproved = 0;  // evaluations since the best; -1: not known (older checkpoints)
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_TRAINING_PROGRESS_H_
