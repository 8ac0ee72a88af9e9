// PipelinePass: this stage's part of the gradient of a step, as a schedule has it.
//
//   for each operation of the stage:            dist/pipeline/schedule.h
//     messages.Before                            waits for the neighbour
//     net of the micro-batch: Forward, Backward  this stage's layers
//     messages.After                             hands on
//
// Micro-batches are the parts of a batch (train.accumulation); gradients add up in their order, so a
// stage has the bits that GradientPass has for its layers. A step of several batches is one schedule
// after the other.
// State: a net for each micro-batch that is alive (MostAlive), which share weights, gradients and work
// memory.
// Thread-safety: the trainer thread. Errors: those of the world.
#ifndef RINGTAIL_APPS_TRAINER_PIPELINE_PIPELINE_PASS_H_
#define RINGTAIL_APPS_TRAINER_PIPELINE_PIPELINE_PASS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/trainer/pipeline/stage_messages.h"
#include "apps/trainer/update/accumulated_gradients.h"
#include "apps/trainer/update/gradient_pass.h"
#include "core/status.h"
#include "layers/net/net.h"

namespace ringtail {

class PipelinePass {
 public:
  // `link` null: memory alone, which is freed again; nothing can run. `options.parts` are the
  // micro-batches of the choice's shape.
  static StatusOr<std::unique_ptr<PipelinePass>> Create(Model* model,
                                                        const GradientPass::Options& options,
                                                        const StageChoice& choice, StageLink* link);

  // As GradientPass::Run; `batch` is read in the first stage, and the result is complete in the last
  // one: in others it is empty, and the listener is told so.
  StatusOr<LossResult> Run(const BatchView& batch, const StepBatch& place,
                           GradientListener* listener = nullptr);
  // All ranks, after a step that was not finite: where in this stage's layers it began, or was seen
  // first; empty: nowhere. Of several stages that see a blob or weight, the first one has it right, of those
  // that see a gradient alone, the last one.
  StatusOr<std::string> DescribeNonFinite(const BatchView& batch, const StepBatch& place);

  PassTimes times() const { return times_; }  // of the step so far, without waiting
  StageMessages::Totals TakeTotals() { return messages_->TakeTotals(); }
  int64_t image_size() const { return options_.image_size; }

 private:
  PipelinePass(Model* model, const GradientPass::Options& options, const StageChoice& choice);
  Net* NetOf(int micro_batch) { return nets_[micro_batch % nets_.size()].get(); }
  StageBatch* BatchOf(int micro_batch) { return &alive_[micro_batch % alive_.size()]; }
  void TakeImages(const BatchView& batch, int micro_batch);
  StepContext Context(const StepBatch& place, int micro_batch);
  void Forward(const StepBatch& place, int micro_batch);
  void Backward(const StepBatch& place, int micro_batch, GradientListener* listener);

  Model* const model_;
  const GradientPass::Options options_;
  const StageChoice choice_;
  std::vector<std::unique_ptr<Net>> nets_;  // by micro-batch, round and round
  std::vector<StageBatch> alive_;           // the same
  std::unique_ptr<StageMessages> messages_;
  AccumulatedGradients sum_;
  LossResult total_;  // of the step so far, as are the times
  PassTimes times_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_PIPELINE_PIPELINE_PASS_H_
