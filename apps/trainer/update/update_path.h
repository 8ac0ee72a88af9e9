// UpdatePath: how the gradients of steps become new weights, alone or among several ranks.
//
//   Trainer                          UpdatePath                      the other ranks
//   BeginStep       ---------------> nothing of the step is computed yet
//                   <-- StepWork:    the rows of the plan, or others (asynchronous/)
//   forward, backward  OnLoss, OnReady --> may send what is final    <------------->
//   FinishStep      ---------------> exchanges, decides, updates     <------------->
//                   <-- StepResult:  the step counts, or it does not
//   synchronized()? evaluate, checkpoint, stop, end
//
// The path decides
//   whether a step counts             it alone changes weights and TrainingProgress::step
//   what the ranks say of it          sums of loss and images, times, a wish to stop
//   when the state is that of all     synchronized()
//   what checkpoints hold beside it   Tensors, WriteParts, Describe; Create restores it
//
// and the trainer evaluates, writes files and ends at synchronized points alone. A path that
// synchronizes after each step (AllreduceUpdate) is always at one; one that lets ranks take several
// steps of their own between exchanges is at one after an exchange; one that never waits for other
// ranks reaches one by agreement on a version of the weights.
// Errors: those of the world; an error of BeginStep or FinishStep ends the generation.
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_APPS_TRAINER_UPDATE_UPDATE_PATH_H_
#define RINGTAIL_APPS_TRAINER_UPDATE_UPDATE_PATH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/trainer/checkpoint/part_exchange.h"
#include "apps/trainer/checkpoint/resume_point.h"
#include "apps/trainer/generation.h"
#include "apps/trainer/update/gradient_pass.h"
#include "apps/trainer/update/own_step.h"
#include "apps/trainer/update/step_work.h"
#include "core/status.h"
#include "core/storage/metrics.h"
#include "core/storage/safetensors.h"

namespace ringtail {

struct StepResult {
  // The same on all ranks. False: a loss or gradient was not finite, and the state is as before.
  bool counted = false;
  Metrics metrics;              // of a step that counts: everything but step_ms
  std::vector<Metrics> rounds;  // of steps that were exchanged together, with this one or before
  // Where a loss or gradient was not finite in a step of some rank that was left out, and how many
  // such steps there were since the last synchronized point; the same on all ranks.
  std::string not_finite;
  int64_t left_out = 0;
  bool silent = false;  // there is nothing to say of it: no line of metrics
};

class UpdatePath {
 public:
  // All ranks, after the run's state has been shared. The path that the config asks for.
  // `generation` must outlive it; `point` is read on its source rank.
  static StatusOr<std::unique_ptr<UpdatePath>> Create(const Generation* generation,
                                                      const ResumePoint& point);
  virtual ~UpdatePath() = default;

  // What this rank computes next. If it is nothing, FinishStep is called at once, and reaches a
  // synchronized point.
  virtual StatusOr<StepWork> BeginStep() = 0;
  // Told of losses and gradients while they are computed.
  virtual GradientListener* listener() = 0;
  virtual StatusOr<StepResult> FinishStep(const OwnStep& own) = 0;
  // Takes back what unfinished steps have changed: the state is that of the last synchronized
  // point. No effect at one.
  virtual void Undo() = 0;

  // Whether all ranks hold the same state now; the same answer on all ranks.
  virtual bool synchronized() const = 0;
  // Whether that is so on rank 0 alone, which evaluates and saves: the others have nothing to
  // compare, and are at a synchronized point at the end of the run only.
  virtual bool leader_keeps() const { return false; }
  // The run is over on this rank: nothing follows.
  virtual void End() {}
  // At a synchronized point: the signal that all ranks stop for; 0: none.
  virtual int stop_signal() const = 0;
  // A sentence for the next run, at the end of this one; empty: none.
  virtual std::string Advice() const = 0;

  // What a checkpoint needs beside the run's state, at a synchronized point.
  virtual void Describe(ResumePoint* point) const = 0;
  // The same on all ranks; rank 0 writes it.
  virtual std::vector<TensorView> Tensors() const = 0;
  // After a rank was lost, and Undo: those of them that need no rank's own part.
  virtual std::vector<TensorView> TensorsAfterLoss() const { return {}; }
  // All ranks: each writes what it holds alone into rank 0's `directory` (null: on other ranks).
  virtual StatusOr<WrittenParts> WriteParts(const CheckpointDirectory* directory) = 0;
  virtual std::vector<int64_t> PartBytes()
      const = 0;  // of the parts, by rank; empty: there are none
  // What the path of the next generation, in which more layers train, continues with in memory.
  virtual void HandOverTo(HandOver* /*next*/) const {}
  // CRC-32C of what all ranks must have the same of Tensors() and of the optimizer's state, of
  // which `optimizer` is the checksum.
  virtual uint32_t Checksum(uint32_t optimizer) const = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_UPDATE_UPDATE_PATH_H_
