// StepGradients: computes this rank's part of a step: its rows of the step's batches, loaded, and
// gone forward and backward by a net for the image size of the phase.
//
//   EnterPhase    net and loader for the image size of the next step
//   Compute       batch 0 | batch 1 | ... -> sums over this rank's samples, gradients in the arena;
//                 of the step's rows, or of those of a ticket (ticket_gradients.h)
//
// Which images a step takes is a function of (seed, step): it does not depend on earlier calls.
// Thread-safety: the trainer thread. Memory: one net and the loader's batches.
#ifndef RINGTAIL_APPS_TRAINER_UPDATE_STEP_GRADIENTS_H_
#define RINGTAIL_APPS_TRAINER_UPDATE_STEP_GRADIENTS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "apps/trainer/generation.h"
#include "apps/trainer/pipeline/pipeline_pass.h"
#include "apps/trainer/sharding/world_shards.h"
#include "apps/trainer/update/gradient_pass.h"
#include "apps/trainer/update/own_step.h"
#include "apps/trainer/update/step_work.h"
#include "apps/trainer/update/ticket_gradients.h"
#include "apps/trainer/world_sum.h"
#include "core/status.h"
#include "data/loader.h"

namespace ringtail {

class StepGradients {
 public:
  // `generation` must outlive it.
  explicit StepGradients(const Generation* generation)
      : generation_(generation), sum_(generation->replicas), shards_(generation->world) {}

  // All ranks, once. Sets up a net for each image size of the run, and for layers that will be
  // unfrozen, so that what is too large fails now and not hours later, and every checkpoint knows
  // the convolution algorithms of all sizes.
  Status PreparePhases();

  // No effect if they are there. Cancelled if a signal came while it measured (alone).
  Status EnterPhase();
  // `listener` may be null.
  StatusOr<OwnStep> Compute(const StepWork& work, GradientListener* listener);
  // All ranks, after a step with a loss or gradient that is not finite. Loads its batches once more
  // and says where it began, and on which rank.
  StatusOr<std::string> WhereNotFinite();

 private:
  Status EnterPhaseOf(int64_t step);
  BatchShare PlannedShare() const;
  GradientPass::Options PassOptions(int64_t image_size);
  // Of a pipeline: this stage's nets, thrown away.
  Status TryPass(Model* model, int64_t image_size);
  StatusOr<LoadedBatch> NextBatch();
  StatusOr<LossResult> RunPass(const LoadedBatch& batch, const StepBatch& place,
                               GradientListener* listener);
  StatusOr<std::string> DescribeNonFinite(const LoadedBatch& batch, const StepBatch& place);
  Status SetUpPhases();
  StatusOr<std::unique_ptr<DataLoader>> CreateLoader(int64_t image_size) const;
  StatusOr<OwnStep> ComputePlanned(const StepWork& work, GradientListener* listener);
  StatusOr<std::string> WhereNotFiniteHere();
  void SeekTo(int64_t step);

  const Generation* const generation_;
  WorldSum sum_;
  WorldShards shards_;
  // Of the current phase: one of the passes; images, unless they are another stage's.
  std::unique_ptr<GradientPass> pass_;
  std::unique_ptr<PipelinePass> stage_pass_;
  std::unique_ptr<DataLoader> loader_;
  int64_t image_size_ = 0;                    // 0: there is no phase yet
  std::unique_ptr<TicketGradients> tickets_;  // has both, where servers give out rows
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_UPDATE_STEP_GRADIENTS_H_
