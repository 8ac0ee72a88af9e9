// Trainer: one run, from its first step or from a checkpoint to its end, alone or as one of several
// ranks.
//
//   gradient of the step's batches -> sum over ranks -> mean -> clip -> optimizer step -> average
//   after a step, if due:  evaluate,  checkpoint,  notice a signal
//
// Everything is a function of (config, images, step): a run that was killed at any instant and
// resumed ends with the same bits as one that was left alone.
// N ranks train as one machine with a batch N times larger: each computes its rows of the global
// batch, gradients are added up while backward goes on, and every rank makes the same step. Where
// the batch grows (optim/batch_growth.h), a step takes several global batches one after the other,
// and what travels with the last one is the sum over all. Rank 0 alone writes; the others have no
// RunDirectory.
// A loss or gradient that is not finite never reaches the weights: by train.on_nan the run stops
// and names the layer, or leaves the step out (at most kMaxSkippedInARow times running).
// A checkpoint that cannot be written is a warning; only final.safetensors must be.
// No file is written of a state that the ranks have not compared and found to be the same
// (state_agreement.h), but for one after a loss, which says so. If they differ and it is known
// whose is wrong, all go back to the last checkpoint that they agreed on and repeat the steps since
// (dist.on_disagreement); the same rank wrong a second time ends the run. Thread-safety: one
// thread, which is the one that computes.
#ifndef RINGTAIL_APPS_TRAINER_TRAINER_H_
#define RINGTAIL_APPS_TRAINER_TRAINER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/config/run_config.h"
#include "apps/trainer/checkpoint/run_directory.h"
#include "apps/trainer/checkpoint/training_state.h"
#include "apps/trainer/division/batch_division.h"
#include "apps/trainer/evaluation.h"
#include "apps/trainer/training_data.h"
#include "apps/trainer/training_observer.h"
#include "apps/trainer/training_outcome.h"
#include "apps/trainer/training_plan.h"
#include "apps/trainer/training_world.h"
#include "apps/trainer/update/gradient_pass.h"
#include "apps/trainer/update/state_agreement.h"
#include "apps/trainer/update/step_exchange.h"
#include "apps/trainer/world_sum.h"
#include "core/status.h"
#include "core/stopwatch.h"
#include "data/loader.h"
#include "optim/batch_scaling.h"
#include "optim/noise_scale.h"

namespace ringtail {

class Trainer {
 public:
  static constexpr int64_t kMaxSkippedInARow = 10;

  // The pointers must outlive the trainer. `directory` is null on ranks other than 0, `observer`
  // may be, and `world` is for one machine.
  static StatusOr<std::unique_ptr<Trainer>> Create(
      const LoadedConfig& loaded, const TrainingData* data, RunDirectory* directory,
      TrainingObserver* observer, TrainingWorld* world = nullptr, const BatchRequest& batch = {});

  // On rank 0 alone: Run hands on what was restored. FailedPrecondition if the checkpoint is of
  // another config, other images or another global batch (BatchRequest::saved); any number of
  // ranks can go on with it.
  Status Resume(const Checkpoint& checkpoint);

  // Once. An error only where the run cannot go on, or its result could not be written. Unless the
  // ranks differ, rank 0 has then written a checkpoint of the last whole step.
  StatusOr<TrainingOutcome> Run();

  // After Run has failed on a rank without a directory: writes the last whole step into that of the
  // run, unless it is there already, and what metrics.jsonl lacks of that step.
  void SaveInto(RunDirectory* directory);

  const TrainingState& state() const { return state_; }
  const TrainingPlan& plan() const { return plan_; }
  const BatchDivision& division() const { return division_; }  // of a batch that has not grown
  const ScaledOptim& optim() const { return optim_; }          // for the batch of all ranks

 private:
  Trainer(RunConfig config, const TrainingData* data, RunDirectory* directory,
          TrainingObserver* observer, TrainingWorld* world, TrainingState state,
          BatchDivision division, ScaledOptim optim, TrainingPlan plan);

  struct StepResult {
    LossResult loss;           // of all ranks
    double wait_seconds = 0;   // for images
    double gradient_norm = 0;  // of the mean gradient over all ranks
  };

  Status Begin();
  Status BeginCompression();
  std::vector<int64_t> CheckpointSizes() const;
  std::string PathOfAgreed(const std::string& path) const;
  StatusOr<TrainingOutcome> RunSteps();
  StatusOr<TrainingOutcome> RunToEnd();
  Status CheckState();
  Status GoBack(const Status& cause);
  StatusOr<std::string> ReadAgreedCheckpoint();
  Status PreparePhases();
  StatusOr<std::unique_ptr<GradientPass>> CreateGradients(int64_t image_size);
  Status EnterPhase();
  void TellOfGrowth();
  Status TrainStep();
  StatusOr<StepResult> ComputeGradients();
  void SeekTo(int64_t step);
  Status CheckSawImages(int64_t seen);
  Status HandleNonFinite();
  StatusOr<std::string> WhereNotFinite();
  StatusOr<std::string> WhereNotFiniteHere();
  Status FinishStep(Metrics metrics, const StepResult& result, const Stopwatch& watch);
  void AddToNoiseScale(const StepResult& result, std::span<const RankStep> ranks);
  int Signal() const;
  bool IsFinished() const;
  int64_t step() const { return state_.progress.step; }

  // What is kept of the run: trainer_results.cc.
  Status EvaluateIfDue();
  Status Evaluate();
  std::vector<int64_t> EvaluationShare() const;
  StatusOr<EvaluationResult> EvaluateShare();
  void Record(const Metrics& metrics);
  Status SaveCheckpoint(bool best);
  void WriteCheckpoint(bool best, int agreed_ranks, const WrittenParts& written);
  Status SaveFinal();
  void SaveAfterFailure();
  std::map<std::string, std::string> Metadata(int agreed_ranks) const;

  const RunConfig config_;
  const TrainingData* data_;
  RunDirectory* directory_;
  TrainingObserver* observer_;
  TrainingWorld* const world_;
  TrainingState state_;
  const BatchDivision division_;
  const ScaledOptim optim_;
  const TrainingPlan plan_;
  StateAgreement agreement_;
  StepExchange exchange_;
  GradientCompression::Saved saved_compression_;      // what Resume has read
  std::unique_ptr<GradientCompression> compression_;  // null: none
  WorldSum sum_;
  std::unique_ptr<GradientPass> gradients_;  // of the current phase
  std::unique_ptr<DataLoader> loader_;
  int64_t lost_in_a_row_ = 0;          // images since one of them could be read, on all ranks
  std::vector<float> buffers_before_;  // running statistics to go back to; empty between steps
  int64_t saved_step_ = -1;            // of the last checkpoint on disk, as known here; -1: none
  int64_t offered_step_ = -1;          // of the last SaveCheckpoint; the same on every rank
  // The last agreed checkpoint of this course, which this run has written or was resumed from; empty:
  // none. The name alone if it is in the run's own folder, which may be renamed.
  std::string agreed_path_;
  NoiseScale noise_scale_;       // the same on every rank
  std::vector<Metrics> newest_;  // of the last step, and of an evaluation after it
  std::string failure_;          // why Run has failed; empty: it has not
  int agreed_signal_ = 0;        // to stop all ranks; 0: none
  Stopwatch since_last_step_;    // for what other ranks are told
  std::string not_finite_;       // where, once the run has to stop for it
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_TRAINER_H_
