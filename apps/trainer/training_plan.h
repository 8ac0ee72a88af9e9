// When things happen in a run: at which steps the picture size changes, evaluations are due, and
// the run ends. Pure functions of the config and the number of training pictures, so that a resumed
// run does the same at the same steps.
//
// An epoch is floor(pictures / batch) steps. Phases, evaluations and the end fall on the step that
// is nearest to the epoch they are given in. Thread-safety: immutable.
#ifndef RINGTAIL_APPS_TRAINER_TRAINING_PLAN_H_
#define RINGTAIL_APPS_TRAINER_TRAINING_PLAN_H_

#include <cstdint>
#include <vector>

#include "apps/run.pb.h"

namespace ringtail {

class TrainingPlan {
 public:
  struct Phase {
    int64_t first_step = 0;
    int64_t image_size = 0;
  };

  TrainingPlan(const RunConfig& config, int64_t steps_per_epoch);

  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  int64_t total_steps() const { return total_steps_; }
  const std::vector<Phase>& phases() const { return phases_; }

  const Phase& PhaseAt(int64_t step) const;
  double EpochAt(int64_t step) const;  // passes over the pictures after `step` steps
  // What is left after `step` steps, counted in steps like the last one: convolutions cost time in
  // proportion to the pixels, so a step of a later phase counts for its share of them.
  double WorkLeft(int64_t step) const;
  // After `step` steps; always at the end.
  bool EvaluationIsDue(int64_t step) const;
  // Beside the checkpoints at evaluations.
  bool CheckpointIsDue(int64_t step) const;

 private:
  int64_t StepAt(double epoch) const;
  int64_t steps_per_epoch_, total_steps_, evaluation_interval_, checkpoint_interval_;
  std::vector<Phase> phases_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_TRAINING_PLAN_H_
