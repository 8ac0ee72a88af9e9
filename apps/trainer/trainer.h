// Trainer: trains one generation of a run (generation.h), from its first step or from a ResumePoint
// to the end of the run, alone or as one of several ranks.
//
//   for each step:   gradients of the step's batches     StepGradients
//                    weights from gradients              UpdatePath
//   where it is due: compare, evaluate, checkpoint       RunKeeper
//
// Everything is a function of (config, images, step): a run that was killed at any instant and
// resumed ends with the same bits as one that was left alone. Where the batch grows
// (optim/batch_growth.h), a step takes several global batches one after the other.
// A loss or gradient that is not finite never reaches the weights: by train.on_nan the run stops
// and names the layer, or leaves the step out (at most kMaxSkippedInARow times in a row).
// Thread-safety: one thread, which is the one that computes.
#ifndef RINGTAIL_APPS_TRAINER_TRAINER_H_
#define RINGTAIL_APPS_TRAINER_TRAINER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "apps/trainer/checkpoint/resume_point.h"
#include "apps/trainer/generation.h"
#include "apps/trainer/run_keeper.h"
#include "apps/trainer/training_outcome.h"
#include "apps/trainer/update/step_gradients.h"
#include "apps/trainer/update/update_path.h"
#include "core/status.h"

namespace ringtail {

class Trainer {
 public:
  static constexpr int64_t kMaxSkippedInARow = 10;

  // All ranks. `point` of its source rank counts, and is empty for a run that begins; the others
  // receive the state in Train. Any number of ranks can continue from it. `run` and `world` must
  // outlive the trainer. FailedPrecondition if the point is of another config or of other images;
  // InvalidArgument if the batch does not fit the ranks, or is not the run's.
  static StatusOr<std::unique_ptr<Trainer>> Create(TrainingRun* run, ResumePoint point,
                                                   TrainingWorld* world);

  // Once. kThaws: the run continues in another generation. An error only where this generation cannot
  // continue, or its result could not be written: TrainToEnd (train_to_end.h) says what comes then.
  StatusOr<TrainingOutcome> Train();

  const Generation& generation() const { return generation_; }
  RunKeeper* keeper() { return &keeper_; }
  // After kThaws.
  HandOver HandOverInMemory() const;

 private:
  Trainer(Generation generation, ResumePoint point);
  Status Begin();
  Status ShareState();
  Status KeepAllreduces();
  StatusOr<TrainingOutcome> TrainSteps();
  bool ThawsNow() const;
  StatusOr<TrainingOutcome> Thaws();
  TrainingOutcome::Kind KindOfEnd() const;
  Status EvaluateIfDue(int64_t since);
  Status SaveIfDue(int64_t since, bool stopping);
  StatusOr<TrainingOutcome> Finish();
  Status EnterStep();
  Status TrainStep();
  Status LeaveStepOut();
  void Tell(const StepResult& result);
  void HearOfStepsLeftOut(const StepResult& result);
  bool IsFinished() const;
  bool IsOutOfPatience() const;
  int64_t step() const { return generation_.step(); }

  const Generation generation_;
  ResumePoint point_;  // empty once training has begun
  StepGradients gradients_;
  std::unique_ptr<UpdatePath> update_;  // null until training begins
  RunKeeper keeper_;
  int64_t synchronized_step_ = -1;  // of the last synchronized point
  std::string not_finite_;          // where, once the run has to stop for it
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_TRAINER_H_
