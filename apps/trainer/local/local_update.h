// LocalUpdate: ranks take steps of their own, and exchange what they have changed in their weights
// after several of them (dist.local). For networks on which the exchange takes longer than a step.
//
//   FinishStep   own gradient -> clip -> own optimizer -> own weights         no other rank is asked
//   every H steps: what this rank has changed -> sum over ranks (RoundExchange, compressed or not)
//                -> outer optimizer -> common weights (LocalRound) -> averaged weights, roll call
//
//   overlap    | round 1 | round 2      | round 3      |      H steps each
//              |         [exchange 1]   [exchange 2]   |      travels while the next round is computed
//                                   merged at the end of it   and what is done meanwhile is kept
//
// The end of a round is a synchronized point: the model holds the common weights, which lag behind
// the ranks' own by one round if rounds overlap, but not at the end of the run. Each rank keeps its
// own optimizer state (DiLoCo, MuLoCo); checkpoints have one part per rank for it (own_state.h).
// A step with a loss or gradient that is not finite changes nothing on its rank, and all ranks hear
// of it at the end of the round. Before dist.local.start_epoch steps are AllreduceUpdate's, and so
// are those of one rank that continues the rounds of several and takes means.
// The first error of the world ends the round, and the step in which it comes: no rank computes on
// for one that is lost. Undo goes back to the last common weights, and alone to all that this rank
// had then.
// Sources: Stich 2019 (local SGD), Lin et al. 2020 (post-local), Wang et al. 2020 (SlowMo),
// Douillard et al. 2023, 2025 (DiLoCo, and its overlapped form), Therien et al. 2025 (MuLoCo).
// Thread-safety: the trainer thread. Memory: that of LocalRound; alone, a copy of OwnState's blocks.
#ifndef RINGTAIL_APPS_TRAINER_LOCAL_LOCAL_UPDATE_H_
#define RINGTAIL_APPS_TRAINER_LOCAL_LOCAL_UPDATE_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/trainer/local/local_period.h"
#include "apps/trainer/local/local_round.h"
#include "apps/trainer/local/own_state.h"
#include "apps/trainer/local/round_exchange.h"
#include "apps/trainer/local/round_sums.h"
#include "apps/trainer/update/gradient_compression.h"
#include "apps/trainer/update/lost_images.h"
#include "apps/trainer/update/progress_listener.h"
#include "apps/trainer/update/update_path.h"
#include "core/stopwatch.h"

namespace ringtail {

class LocalUpdate : public UpdatePath {
 public:
  // All ranks.
  static StatusOr<std::unique_ptr<UpdatePath>> Create(const Generation* generation,
                                                      const ResumePoint& point);

  StatusOr<StepWork> BeginStep() override;
  GradientListener* listener() override;
  StatusOr<StepResult> FinishStep(const OwnStep& own) override;
  void Undo() override;

  bool synchronized() const override { return synchronized_; }
  int stop_signal() const override;
  std::string Advice() const override;

  void Describe(ResumePoint* point) const override;
  std::vector<TensorView> Tensors() const override;
  std::vector<TensorView> TensorsAfterLoss() const override;
  StatusOr<WrittenParts> WriteParts(const CheckpointDirectory* directory) override;
  std::vector<int64_t> PartBytes() const override;
  uint32_t Checksum(uint32_t optimizer) const override;

 private:
  explicit LocalUpdate(const Generation* generation);
  bool RoundsFollow() const;  // not on one rank that takes means
  Status CreateRounds(const ResumePoint& point);
  Status Restore(const ResumePoint& point);
  Status AddUnsent();
  void EndRounds();
  Status FindWriters();
  void BeginRound();
  StatusOr<StepResult> FinishDenseStep(const OwnStep& own);
  // This rank's own update.
  Status Update(const OwnStep& own, StepResult* result);
  Status LeaveOut(const OwnStep& own);
  Status EndRound(StepResult* result);
  Status HearOfTheEnd();
  void StartExchange();
  void TakeNothing(RankRound* own);
  Status FinishExchange(StepResult* result);
  Metrics RoundMetrics(std::span<const RankRound> ranks, std::optional<double> cosine);
  std::vector<TensorView> OwnTensors() const;
  Status CountLeftOut(std::span<const RankRound> ranks, StepResult* result);
  int64_t step() const { return generation_->step(); }
  double RateOf(int64_t step) const;
  // Of the last step of the round that is exchanged.
  double OfferedRate() const { return RateOf(offered_begin_ + offered_.steps - 1); }

  const Generation* const generation_;
  TrainingWorld* const world_;
  ProgressListener progress_;
  LocalPeriod period_;
  // Of the steps before period_.first_step(), and after all rounds; null between them.
  std::unique_ptr<UpdatePath> dense_;
  std::unique_ptr<LocalRound> round_;                 // null while dense_ is not
  std::unique_ptr<GradientCompression> compression_;  // null: none
  std::unique_ptr<RoundExchange> exchange_;           // uses both to its end
  std::unique_ptr<PartExchange> parts_;               // null: no part is written
  std::vector<int64_t> part_bytes_;
  OwnState own_;
  LostImages lost_images_;

  // Of rounds that were merged when the run continued, for the next step that counts.
  StepResult continued_;
  bool synchronized_ = true;
  int64_t rounds_ = 0;                       // merged so far
  int64_t rounds_of_this_run_ = 0;           // since it was started or continued
  int64_t round_begin_ = 0, round_end_ = 0;  // steps
  RoundSums sums_;                           // since round_begin_
  RoundSums offered_;                        // of the round that waits for its exchange, or has it
  int64_t offered_begin_ = 0;                // its first step
  RoundSums::Saved saved_sums_{};            // offered_, as OwnState has it
  std::vector<float> statistics_before_;     // running statistics before the step
  double last_exchange_seconds_ = 0;
  int agreed_signal_ = 0;
  Stopwatch since_step_, since_merge_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_LOCAL_LOCAL_UPDATE_H_
