// Trainer: one run, from its first step or from a checkpoint to its end.
//
//   gradient of the batch -> mean -> clip -> optimizer step at the step's rate -> average
//   after a step, if due:  evaluate,  checkpoint,  notice a signal
//
// Everything is a function of (config, pictures, step): a run that was killed at any instant and
// resumed ends with the same bits as one that was left alone.
// A loss or gradient that is not finite never reaches the weights: by train.on_nan the run stops
// and names the layer, or leaves the step out (at most kMaxSkippedInARow times running).
// A checkpoint that cannot be written is a warning; only final.safetensors must be.
// Thread-safety: one thread, which is the one that computes.
#ifndef RINGTAIL_APPS_TRAINER_TRAINER_H_
#define RINGTAIL_APPS_TRAINER_TRAINER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "apps/run_config.h"
#include "apps/stopwatch.h"
#include "apps/trainer/gradient_pass.h"
#include "apps/trainer/run_directory.h"
#include "apps/trainer/training_data.h"
#include "apps/trainer/training_observer.h"
#include "apps/trainer/training_plan.h"
#include "apps/trainer/training_state.h"
#include "core/status.h"
#include "data/loader.h"

namespace ringtail {

struct TrainingOutcome {
  enum class Kind {
    kFinished,         // all epochs
    kReachedAccuracy,  // train.until_accuracy
    kStopped,          // by a signal; resumable
    kNotFinite,        // on_nan
  };
  Kind kind = Kind::kFinished;
  std::string message;  // one sentence for people
};

class Trainer {
 public:
  static constexpr int64_t kMaxSkippedInARow = 10;

  // The pointers must outlive the trainer; `observer` may be null.
  static StatusOr<std::unique_ptr<Trainer>> Create(const LoadedConfig& loaded,
                                                   const TrainingData* data,
                                                   RunDirectory* directory,
                                                   TrainingObserver* observer);

  // FailedPrecondition if the checkpoint is of another config or other pictures.
  Status Resume(const Checkpoint& checkpoint);

  // Once. An error only where the run cannot go on, or its result could not be written.
  StatusOr<TrainingOutcome> Run();

  const TrainingState& state() const { return state_; }
  const TrainingPlan& plan() const { return plan_; }

 private:
  Trainer(RunConfig config, const TrainingData* data, RunDirectory* directory,
          TrainingObserver* observer, TrainingState state, TrainingPlan plan);

  Status PreparePhases();
  StatusOr<std::unique_ptr<GradientPass>> CreateGradients(int64_t image_size);
  Status EnterPhase();
  Status TrainStep();
  void HandleNonFinite(const BatchView& batch);
  Status EvaluateIfDue();
  Status Evaluate();
  void SaveCheckpoint(bool best);
  Status SaveFinal();
  bool IsFinished() const;
  TrainingOutcome Stopped();
  TrainingOutcome NotFinite() const;
  TrainingOutcome Finished() const;
  std::map<std::string, std::string> Metadata() const;
  int64_t step() const { return state_.progress.step; }

  const RunConfig config_;
  const TrainingData* data_;
  RunDirectory* directory_;
  TrainingObserver* observer_;
  TrainingState state_;
  const TrainingPlan plan_;
  std::unique_ptr<GradientPass> gradients_;  // of the current phase
  std::unique_ptr<DataLoader> loader_;
  std::vector<float> buffers_before_;  // on_nan SKIP: running statistics to go back to
  int64_t saved_step_ = -1;            // of the last checkpoint on disk; -1: none
  std::string not_finite_;             // where, once the run has to stop for it
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_TRAINER_H_
