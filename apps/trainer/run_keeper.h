// RunKeeper: what is kept of a run: evaluations, metrics, checkpoints, the trained network. Rank 0
// alone has a RunDirectory and writes; every rank takes its part in evaluations and comparisons.
//
// No file is written of a state that the ranks have not compared and found to be the same
// (state_agreement.h). The exception is a checkpoint after a failure, which says so: other ranks
// cannot be asked any more (agreed_ranks 0, or 1 alone).
// Where rank 0 alone holds the state (UpdatePath::leader_keeps), it does all of it by itself.
// A checkpoint that cannot be written is a warning; final.safetensors must be written.
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_APPS_TRAINER_RUN_KEEPER_H_
#define RINGTAIL_APPS_TRAINER_RUN_KEEPER_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "apps/trainer/checkpoint/part_exchange.h"
#include "apps/trainer/checkpoint/resume_point.h"
#include "apps/trainer/evaluation.h"
#include "apps/trainer/generation.h"
#include "apps/trainer/rate_guard.h"
#include "apps/trainer/sharding/whole_state.h"
#include "apps/trainer/update/state_agreement.h"
#include "apps/trainer/update/update_path.h"
#include "core/status.h"
#include "core/storage/metrics.h"

namespace ringtail {

class RunKeeper {
 public:
  // `generation` must outlive it.
  explicit RunKeeper(const Generation* generation)
      : generation_(generation),
        directory_(generation->run->options.directory),
        agreement_(generation->replicas) {}

  // Opens the files of the run, which continues from `point` (or begins, if that is empty). If that
  // is the best checkpoint, best.safetensors is another name of its file from now on.
  Status Begin(const ResumePoint& point);
  // From now on the state is that of all ranks, and `update`, which must outlive the keeper, has
  // its part of it. Warns if the disk has no room for a checkpoint.
  void Keep(UpdatePath* update);

  void Record(const Metrics& metrics);
  // All ranks. OK, and nothing done, if a stop signal interrupted it.
  Status Evaluate();
  // All ranks. DataLoss, and ranks_differ(), unless all hold the same state. Alone: OK at once.
  Status Compare();
  // All ranks. An error only if the ranks differ or the world is lost.
  Status SaveCheckpoint(bool best);
  // All ranks, after Compare.
  Status SaveFinal();

  // After `cause` has ended the run: writes the last whole state, if it is not on the disk yet.
  // Other ranks are not asked.
  void SaveAfterFailure(const Status& cause);
  // After SaveAfterFailure on a rank without a directory: the same into that of the run, and what
  // metrics.jsonl lacks of the last step.
  void SaveInto(RunDirectory* directory);

  const StateAgreement& agreement() const { return agreement_; }
  int64_t saved_step() const { return saved_step_; }
  int64_t offered_step() const { return offered_step_; }
  const std::string& agreed_path() const { return agreed_path_; }

 private:
  // Whether no other rank takes part.
  bool KeepsAlone() const;
  Status NameBest(const ResumePoint& point);
  Status TakeIn(const ResumePoint& point);
  ResumePoint Point(int agreed_ranks) const;
  std::map<std::string, std::string> Metadata(int agreed_ranks) const;
  std::vector<TensorView> Tensors(bool agreed) const;
  std::vector<int64_t> CheckpointSizes() const;
  std::string PathOfAgreed(const std::string& path) const;
  bool DividesState() const;  // whether ranks hold parts of it
  Status CheckFinite() const;
  StatusOr<EvaluationResult> ScoreValidation() const;
  void ExplainLoss(const EvaluationResult& result);
  void WarnOfHighRate(const EvaluationResult& result);
  int64_t WholeBytes(int64_t own) const;
  Status CompareStages(const Status& own);
  // All ranks: what they hold parts of, of tensors like `own`, is whole on rank 0 until whole_ is cleared.
  Status GatherParts(std::span<const TensorView> own);
  Status WriteFinal();
  Status WriteCheckpoint(int agreed_ranks, const WrittenParts& written);
  void KeepCheckpoint(bool best, int agreed_ranks, const WrittenParts& written);

  const Generation* const generation_;
  RunDirectory* directory_;
  UpdatePath* update_ = nullptr;  // null: the state is not complete yet
  StateAgreement agreement_;
  RateGuard rate_guard_;
  bool explained_ = false;     // a validation loss
  bool knows_saved_ = false;   // saved_step_, from the generation before
  int64_t saved_step_ = -1;    // of the last checkpoint on disk, as known here; -1: none
  int64_t offered_step_ = -1;  // of the last SaveCheckpoint; the same on every rank
  // The last agreed checkpoint that this run has written or was resumed from; empty: none. The name
  // alone if it is in the run's own folder, which may be renamed.
  std::string agreed_path_;
  WholeTensors whole_;           // of the state that is being written
  std::vector<Metrics> newest_;  // of the last step, and of an evaluation after it
  std::string failure_;          // why the run has failed; empty: it has not
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_RUN_KEEPER_H_
