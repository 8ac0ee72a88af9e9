// AllreduceUpdate: synchronous data parallelism. In every step all ranks add up their gradients and
// make the same update, so that N ranks train as one machine with a batch N times larger. Alone the
// sum is this process's gradient.
//
//   gradients -> sum over ranks (StepExchange, compressed or not) -> mean -> clip -> optimizer step
//             -> averaged weights -> noise scale
//
// While the last gradients travel, the optimizer prepares what it needs of the first
// (optim/prepared_step.h). While it makes the step, the roll call travels.
// A loss or gradient that is not finite never reaches the weights: all ranks see it in the sums and
// leave the step out. Every step ends at a synchronized point.
// Thread-safety: the trainer thread; StepExchange uses the communication thread meanwhile.
#ifndef RINGTAIL_APPS_TRAINER_UPDATE_ALLREDUCE_UPDATE_H_
#define RINGTAIL_APPS_TRAINER_UPDATE_ALLREDUCE_UPDATE_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/trainer/update/gradient_compression.h"
#include "apps/trainer/update/lost_images.h"
#include "apps/trainer/update/roll_call.h"
#include "apps/trainer/update/step_exchange.h"
#include "apps/trainer/update/update_path.h"
#include "core/stopwatch.h"
#include "optim/noise_scale.h"
#include "optim/prepared_step.h"

namespace ringtail {

class AllreduceUpdate : public UpdatePath {
 public:
  static StatusOr<std::unique_ptr<UpdatePath>> Create(const Generation* generation,
                                                      const ResumePoint& point);

  StatusOr<StepWork> BeginStep() override;
  GradientListener* listener() override { return &exchange_; }
  StatusOr<StepResult> FinishStep(const OwnStep& own) override;
  void Undo() override;

  bool synchronized() const override { return true; }
  int stop_signal() const override { return roll_call_.stop_signal(); }
  std::string Advice() const override { return noise_scale_.Describe(); }

  void Describe(ResumePoint* point) const override;
  std::vector<TensorView> Tensors() const override;
  StatusOr<WrittenParts> WriteParts(const CheckpointDirectory* directory) override;
  std::vector<int64_t> PartBytes() const override;
  void HandOverTo(HandOver* next) const override;
  uint32_t Checksum(uint32_t previous) const override;

 private:
  explicit AllreduceUpdate(const Generation* generation);
  void RestoreStatistics();
  Status CreateCompression(const ResumePoint& point);
  // `mean`: one over the images of the step.
  Status ExchangeAndPrepare(double mean);
  StatusOr<double> NormOfMean(double mean);
  RankMetrics OwnMetrics(const OwnStep& own);
  // Optimizer and averaged weights.
  void UpdateWeights(double rate, double mean, double norm);
  Status FinishRollCall(const OwnStep& own, const LossResult& loss, double gradient_norm,
                        Metrics* metrics);
  void AddToNoiseScale(const LossResult& loss, double gradient_norm,
                       std::span<const RankStep> ranks);

  const Generation* const generation_;
  TrainingWorld* const world_;
  std::unique_ptr<GradientCompression> compression_;  // null: none
  StepExchange exchange_;                             // uses it to its end
  LostImages lost_images_;
  RollCall roll_call_;
  ExchangeTimes shard_times_;             // of the step's activations, where ranks divide layers
  const bool prepares_;                   // the same on every rank
  PreparedStep prepared_;                 // unused otherwise
  NoiseScale noise_scale_;                // the same on every rank
  std::vector<float> statistics_before_;  // running statistics to go back to; empty between steps
  Stopwatch since_begin_;                 // of the step
  Stopwatch since_last_step_;             // for what other ranks are told
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_UPDATE_ALLREDUCE_UPDATE_H_
