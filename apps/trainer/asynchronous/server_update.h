// ServerUpdate: ranks that do not wait for one another (dist.asynchronous). Servers on the ranks hold
// the weights; every rank pulls them, computes the gradient of a ticket's images, and pushes it.
//
//   BeginStep     wait for a ticket and weights       WorkerRound
//   FinishStep    push; or, if no ticket is left, the end of a round:
//
//     worker 0  |pull push|pull push|pull push| snapshot, evaluate, save |pull push|pull push|
//     worker 1  |pull    push|pull    push|  |pull    push|pull    push|pull    push|
//                 a round: tickets up to the      the next round has begun
//                 next thing that is due
//
// A round ends where the plan evaluates, saves a checkpoint, or changes the image size: all rows
// before are used then, all pushes judged, and an incomplete group is applied with its own count.
// Worker 0 takes the state of all servers, with that of their optimizers: a synchronized point of
// update_path.h on that rank alone, with checkpoints that any number of ranks resume from. The
// others compute the next round meanwhile. With SYNCHRONOUS, or one worker, the bits are those of a
// run that was never stopped.
// From the first step on nothing needs all ranks: one that is lost, unless it serves, is not the end
// of the others.
// A gradient that is not finite is refused; with train.on_nan: STOP its worker ends the round. Worker
// 0 says when the loss becomes that of chance, or far worse, and what to change.
// Thread-safety: the trainer thread. Memory: beside the shard, a copy of the weights, those that
// travel, and gradients that travel.
#ifndef RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_SERVER_UPDATE_H_
#define RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_SERVER_UPDATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/parameter_server/divergence_guard.h"
#include "apps/trainer/asynchronous/served_shard.h"
#include "apps/trainer/asynchronous/shard_placement.h"
#include "apps/trainer/asynchronous/worker_round.h"
#include "apps/trainer/update/lost_images.h"
#include "apps/trainer/update/progress_listener.h"
#include "apps/trainer/update/update_path.h"
#include "core/stopwatch.h"

namespace ringtail {

class ServerUpdate : public UpdatePath {
 public:
  // All ranks. InvalidArgument if the rule and the optimizer contradict each other.
  static StatusOr<std::unique_ptr<UpdatePath>> Create(const Generation* generation,
                                                      const ResumePoint& point);
  ~ServerUpdate() override;

  StatusOr<StepWork> BeginStep() override;
  GradientListener* listener() override { return &listener_; }
  // Of a rank that only serves: what the others have done in a second, or the end of a round.
  StatusOr<StepResult> FinishStep(const OwnStep& own) override;
  void Undo() override;

  bool synchronized() const override { return synchronized_; }
  int stop_signal() const override { return agreed_signal_; }
  std::string Advice() const override { return ""; }
  bool leader_keeps() const override { return true; }
  void End() override;

  void Describe(ResumePoint* point) const override;
  // Of worker 0.
  std::vector<TensorView> Tensors() const override;
  StatusOr<WrittenParts> WriteParts(const CheckpointDirectory* /*directory*/) override {
    return WrittenParts{};
  }
  std::vector<int64_t> PartBytes() const override { return {}; }
  uint32_t Checksum(uint32_t optimizer) const override { return optimizer; }

 private:
  explicit ServerUpdate(const Generation* generation);
  Status Start(const ResumePoint& point);
  Status ChooseCoding();
  std::vector<WorkerLink::Server> Servers() const;
  Status CreateReplicas();
  void StartServing(size_t own);
  Status Push(const OwnStep& own, StepResult* result);
  Status LeaveOut(const OwnStep& own);
  void FollowStep(int64_t images);
  int Signal() const;
  void Measure(const OwnStep& own, StepResult* result);
  void Watch(const UpdateCounts& counts);

  // Worker 0.
  Status EndRound(StepResult* result);
  Status TakeSnapshot();
  void OpenRound();
  bool IsBounded() const;
  // The others.
  Status EndRun(StepResult* result);
  void TellWhatStopped(StepResult* result);
  Status Look();
  bool Computes() const;
  void KeepState();

  const Generation* const generation_;
  TrainingWorld* const world_;
  ProgressListener listener_;
  LostImages lost_images_;
  const int64_t images_per_step_;
  std::vector<CompressedLayer> layers_;  // of compressed gradients; empty: none is
  std::optional<LayerMemories> memories_;
  std::vector<PlacedShard> shards_;
  std::unique_ptr<WorkerLink> link_;
  std::unique_ptr<ServedShard> served_;                 // null: this rank serves none
  std::vector<std::unique_ptr<ServedShard>> replicas_;  // of shards of other ranks
  std::unique_ptr<WorkerRound> round_;

  StepWork work_;
  bool synchronized_ = true;
  int64_t round_begin_ = 0;                  // step
  int64_t round_end_;                        // of worker 0; the others know that of the run
  ServerProgress progress_;                  // at round_begin_
  RuleState learnt_;                         // then
  std::vector<float> weights_, statistics_;  // then
  std::vector<float> statistics_before_;     // running statistics before the step
  // Of this round, on this rank.
  int64_t left_out_ = 0, left_out_in_a_row_ = 0;
  std::string not_finite_;              // where
  bool must_stop_ = false;              // for that
  bool begun_ = false, ended_ = false;  // the first step has, and the last
  int agreed_signal_ = 0;
  std::optional<DivergenceGuard> guard_;  // of worker 0
  bool started_ = false;                  // servers know this worker
  Stopwatch since_step_, since_line_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_SERVER_UPDATE_H_
