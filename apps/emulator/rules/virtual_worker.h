// VirtualWorker: what a worker that takes steps of its own has of its own: weights, running
// statistics, and the optimizer's state.
//
//   model's arena   the arena in which the one network computes; gradients appear there
//   own arena       this worker's weights and statistics between its steps
//
//   { WorkerInPlace place(worker);  compute;  worker->Update(...); }      no weight is copied
//
// All optimizers work on the model's arena, each with a state of its own, so that a worker needs no
// gradient block. Thread-safety: the trainer thread. Memory: weights, statistics, optimizer state.
#ifndef RINGTAIL_APPS_EMULATOR_RULES_VIRTUAL_WORKER_H_
#define RINGTAIL_APPS_EMULATOR_RULES_VIRTUAL_WORKER_H_

#include <memory>

#include "core/parameter.h"
#include "core/status.h"
#include "layers/net/net.h"
#include "optim/optimizer.h"

namespace ringtail {

class VirtualWorker {
 public:
  // With the weights and statistics that are in the model's arena, which must outlive the worker.
  static StatusOr<std::unique_ptr<VirtualWorker>> Create(const OptimConfig& optim,
                                                         ParameterArena* model);

  // Own weights; the model's while this worker is in place.
  ParameterArena* arena() { return own_.get(); }

  // The optimizer's state, of an optimizer of the same rule.
  void CopyState(Optimizer* from);

  // In place, after its gradients have been computed: makes them new weights. False if a loss or
  // gradient is not finite; the weights are unchanged then.
  bool Update(const LossResult& loss, int64_t step, double learning_rate, double clip_norm);

 private:
  friend class WorkerInPlace;
  VirtualWorker(std::unique_ptr<ParameterArena> own, ParameterArena* model)
      : own_(std::move(own)), model_(model) {}
  void Swap() { model_->SwapValues(own_.get()); }

  const std::unique_ptr<ParameterArena> own_;
  ParameterArena* const model_;
  std::unique_ptr<Optimizer> optimizer_;
};

// While it lives, the model's arena holds the worker's weights and statistics.
class WorkerInPlace {
 public:
  explicit WorkerInPlace(VirtualWorker* worker) : worker_(worker) { worker_->Swap(); }
  ~WorkerInPlace() { worker_->Swap(); }
  WorkerInPlace(const WorkerInPlace&) = delete;
  WorkerInPlace& operator=(const WorkerInPlace&) = delete;

 private:
  VirtualWorker* const worker_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_RULES_VIRTUAL_WORKER_H_
