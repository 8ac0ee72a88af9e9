// TrainingPlan: how many batches a step takes, at which steps the image size changes, evaluations
// are due, and the run ends. Pure functions of the config and the number of training images, so
// that a resumed run does the same at the same steps.
//
//   epochs   0       1       2       3       4     floor(images / batch) batches each,
//   batches  | | | | | | | | | | | | | | | | |     of the size that the run begins with
//   steps    | | | | | | | | |   |   |     |       of one batch; where the batch has grown
//            1               2       3             (optim/batch_growth.h), of several
//
// Phases, evaluations and the end are given in epochs and rounded to the nearest batch: a phase
// begins with the first step that starts at that batch or later, an evaluation follows the first
// step that reaches it, and the run ends with the step whose end is nearest.
// Thread-safety: immutable.
#ifndef RINGTAIL_APPS_TRAINER_TRAINING_PLAN_H_
#define RINGTAIL_APPS_TRAINER_TRAINING_PLAN_H_

#include <cstdint>
#include <vector>

#include "apps/run.pb.h"
#include "optim/batch_growth.h"

namespace ringtail {

// How the batch grows.
struct PlanGrowth {
  OptimConfig optim;             // after batch scaling
  int64_t images_per_batch = 1;  // over all ranks
  int64_t most_batches = 1;      // of a step; 1: none grows
};

class TrainingPlan {
 public:
  static constexpr int64_t kNever = int64_t{1} << 50;  // a batch, or step, that no run reaches
  struct Phase {
    int64_t first_batch = 0;
    int64_t image_size = 0;
  };

  TrainingPlan(const RunConfig& config, int64_t batches_per_epoch, const PlanGrowth& growth = {});

  int64_t batches_per_epoch() const { return growth_run_.batches_per_epoch; }
  int64_t total_steps() const { return total_steps_; }
  const GrowthRun& growth_run() const { return growth_run_; }
  const std::vector<GrowthStage>& stages() const { return stages_; }

  int64_t BatchesBefore(int64_t step) const;  // taken by the first `step` steps
  int64_t BatchesOf(int64_t step) const;      // taken by step `step` (0-based)
  // The stage that begins with `step`, as an index of stages(); 0: none, or the first.
  size_t StageBeginningAt(int64_t step) const;
  const Phase& PhaseAt(int64_t step) const;
  double EpochAt(int64_t step) const;  // passes over the images after `step` steps
  // The first step (0-based) that trains what train.freeze names; kNever: none.
  int64_t thaw_step() const { return thaw_step_; }
  bool IsThawed(int64_t step) const { return step >= thaw_step_; }
  int64_t evaluation_batches() const { return evaluation_interval_; }  // from one to the next
  // Evaluations that are due after more than `since` steps and at most `step`; where each is made
  // when it is due, so many are made.
  int64_t EvaluationsBetween(int64_t since, int64_t step) const;
  // The work of a step, and the work that remains after `step` steps, in batches of
  // data.image_size: the time of convolutions is proportional to the pixels, so a batch of larger
  // images counts more.
  double WorkOf(int64_t step) const;
  double WorkLeft(int64_t step) const;
  // Whether something is due after `step` steps that was not after `since` <= `step` (synchronized
  // points of update/update_path.h; at first the last that was evaluated).
  bool EvaluationIsDue(int64_t since, int64_t step) const;  // always at the end
  bool CheckpointIsDue(int64_t since, int64_t step) const;  // beside those at evaluations
  bool ComparisonIsDue(int64_t since, int64_t step) const;  // of the ranks' states

 private:
  int64_t BatchAt(double epoch) const;
  int64_t FirstStepFrom(int64_t batch) const;
  const GrowthStage& StageOf(int64_t step) const;
  double WorkOfBatch(const Phase& phase) const;
  GrowthRun growth_run_;
  std::vector<GrowthStage> stages_;
  int64_t total_steps_;
  int64_t thaw_step_;
  int64_t evaluation_interval_;  // in batches, the others in steps
  int64_t checkpoint_interval_, comparison_interval_;
  std::vector<Phase> phases_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_TRAINING_PLAN_H_
