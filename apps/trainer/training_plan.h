// When things happen in a run: how many batches a step takes, at which steps the image size
// changes, evaluations are due, and the run ends. Pure functions of the config and the number of
// training images, so that a resumed run does the same at the same steps.
//
//   epochs   0       1       2       3       4     floor(images / batch) batches each,
//   batches  | | | | | | | | | | | | | | | | |     of the size that the run begins with
//   steps    | | | | | | | | |   |   |     |       of one batch; where the batch has grown
//            1               2       3             (optim/batch_growth.h), of several
//
// Phases, evaluations and the end fall on the batch that is nearest to the epoch they are given in: a
// phase begins with the first step that starts there or behind it, an evaluation follows the first
// step that reaches it, and the run ends with the step whose end is nearest.
// Thread-safety: immutable.
#ifndef RINGTAIL_APPS_TRAINER_TRAINING_PLAN_H_
#define RINGTAIL_APPS_TRAINER_TRAINING_PLAN_H_

#include <cstdint>
#include <vector>

#include "apps/run.pb.h"
#include "optim/batch_growth.h"

namespace ringtail {

// How the batch grows: `optim` as batch scaling has made it.
struct PlanGrowth {
  OptimConfig optim;
  int64_t images_per_batch = 1;  // over all ranks
  int64_t most_batches = 1;      // of a step; 1: none grows
};

class TrainingPlan {
 public:
  struct Phase {
    int64_t first_batch = 0;
    int64_t image_size = 0;
  };

  TrainingPlan(const RunConfig& config, int64_t batches_per_epoch, const PlanGrowth& growth = {});

  int64_t batches_per_epoch() const { return growth_run_.batches_per_epoch; }
  int64_t total_steps() const { return total_steps_; }
  const GrowthRun& growth_run() const { return growth_run_; }
  const std::vector<GrowthStage>& stages() const { return stages_; }

  int64_t BatchesBefore(int64_t step) const;  // all that `step` steps take
  int64_t BatchesOf(int64_t step) const;      // that `step` (0-based) takes
  // The stage that begins with `step`, as an index of stages(); 0: none, or the first.
  size_t StageBeginningAt(int64_t step) const;
  const Phase& PhaseAt(int64_t step) const;
  double EpochAt(int64_t step) const;  // passes over the images after `step` steps
  // What a step costs, and what is left to do after `step` steps, in batches of data.image_size:
  // convolutions cost time in proportion to the pixels, so one of a later phase counts for more.
  double WorkOf(int64_t step) const;
  double WorkLeft(int64_t step) const;
  // After `step` steps; always at the end.
  bool EvaluationIsDue(int64_t step) const;
  // Beside the checkpoints at evaluations.
  bool CheckpointIsDue(int64_t step) const;

 private:
  int64_t BatchAt(double epoch) const;
  const GrowthStage& StageOf(int64_t step) const;
  double WorkOfBatch(const Phase& phase) const;
  GrowthRun growth_run_;
  std::vector<GrowthStage> stages_;
  int64_t total_steps_, evaluation_interval_, checkpoint_interval_;  // in steps, batches, steps
  std::vector<Phase> phases_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_TRAINING_PLAN_H_
