// Generation: a run in one world. Fixed as long as the world lives; a run that continues in another
// world (more ranks, fewer, or after going back to a checkpoint) does so as another generation.
//
// Thread-safety: immutable, but for the run's state, which belongs to the trainer thread.
#ifndef RINGTAIL_APPS_TRAINER_GENERATION_H_
#define RINGTAIL_APPS_TRAINER_GENERATION_H_

#include <cstdint>
#include <memory>

#include "apps/trainer/checkpoint/resume_point.h"
#include "apps/trainer/division/batch_division.h"
#include "apps/trainer/pipeline/stage_messages.h"
#include "apps/trainer/training_plan.h"
#include "apps/trainer/training_run.h"
#include "apps/trainer/training_world.h"
#include "core/status.h"
#include "optim/batch_scaling.h"

namespace ringtail {

struct Generation {
  // All ranks. `run` and `world` must outlive the generation. Errors: InvalidArgument if the ranks
  // do not have the same images, or the batch cannot be divided; those of the world.
  static StatusOr<Generation> Create(TrainingRun* run, const ResumePoint& point,
                                     TrainingWorld* world);

  const RunConfig& config() const { return run->config(); }
  const TrainingData& data() const { return *run->options.data; }
  TrainingObserver* observer() const { return run->options.observer; }
  TrainingState& state() const { return run->state; }
  ParameterArena& arena() const { return run->state.model()->arena(); }
  TrainingProgress& progress() const { return run->state.progress; }
  int64_t step() const { return run->state.progress.step; }  // optimizer steps done
  // Whether layers that are frozen will train in a later generation, with nets of their own.
  bool WillThaw() const { return run->frozen && config().train().freeze_epochs() > 0; }

  TrainingRun* run;
  TrainingWorld* world;  // all ranks
  // The ranks that hold the same weights as this one, and add up their gradients: all, or of a
  // pipeline those with its layers. `division` is among them.
  TrainingWorld* replicas;
  // Of a pipeline, else null.
  std::unique_ptr<TrainingWorld> own_replicas;
  std::unique_ptr<StageLink> link;
  BatchDivision division;  // before the batch grows; with servers, of a gradient of each worker
  ScaledOptim optim;       // for the batch of all ranks
  TrainingPlan plan;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_GENERATION_H_
