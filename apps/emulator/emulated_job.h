// EmulatedJob: what all rules of an emulation share.
//
//   config, images, plan    as of a real run: the same batches, rates, image sizes, evaluations
//   script                  workers, speeds, network, events
//   queue, network, speed   virtual time
//   run, net                the model and its state; the one network that computes
//   log                     what is written
//
// Real time and virtual time have nothing to do with each other: gradients are computed whenever
// the order of events asks for them, and take as long as the speed model says.
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_APPS_EMULATOR_EMULATED_JOB_H_
#define RINGTAIL_APPS_EMULATOR_EMULATED_JOB_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "apps/config/run_config.h"
#include "apps/emulator/clock/event_queue.h"
#include "apps/emulator/clock/exchange_items.h"
#include "apps/emulator/clock/speed_model.h"
#include "apps/emulator/clock/virtual_network.h"
#include "apps/emulator/emulation_log.h"
#include "apps/emulator/script.h"
#include "apps/emulator/shared_net.h"
#include "apps/trainer/training_data.h"
#include "apps/trainer/training_plan.h"
#include "apps/trainer/training_run.h"
#include "core/status.h"
#include "optim/batch_scaling.h"

namespace ringtail {

// Where this process's own time goes, in seconds, beside forward and backward.
struct RealTimes {
  double update = 0, exchange = 0, evaluation = 0;
};

class EmulatedJob {
 public:
  // The pointers must outlive the job. InvalidArgument if the config asks for what an emulation
  // cannot do, or the batch cannot be divided.
  static StatusOr<std::unique_ptr<EmulatedJob>> Create(const LoadedConfig* loaded,
                                                       const TrainingData* data,
                                                       const EmulationScript& script);
  EmulatedJob(const EmulatedJob&) = delete;
  EmulatedJob& operator=(const EmulatedJob&) = delete;

  const RunConfig& config() const { return loaded_->config; }
  const EmulationScript& script() const { return script_; }
  const OptimConfig& optim() const { return optim_.config; }  // for the batch of a step
  const TrainingPlan& plan() const { return plan_; }
  int64_t classes() const { return std::ssize(data_->dataset->class_names()); }
  ParameterArena* arena() { return &run_.state.model()->arena(); }
  TrainingState* state() { return &run_.state; }
  SharedNet* net() { return &net_; }
  EventQueue* queue() { return &queue_; }
  VirtualNetwork* network() { return &network_; }
  EmulationLog* log() { return &log_; }
  RealTimes* real() { return &real_; }

  // Workers 0 .. workers - 1, which are there at the start.
  std::vector<int> FirstWorkers() const;
  bool is_dead(int worker) const { return dead_.contains(worker); }
  void MarkDead(int worker) { dead_.insert(worker); }

  // The rows of member `member` of `members`, in multiples of train.accumulation. InvalidArgument
  // if there are more members than such multiples.
  StatusOr<ElementRange> RowsOf(size_t member, size_t members) const;
  double RateOf(int64_t step) const;

  // Forward and backward of `rows` images begin: when they end. What the worker has sent while it
  // computed the pass before has made that one longer, and is added here.
  int64_t BeginPass(int worker, int64_t step, ElementRange rows);
  // When a pass that begins now has come to `fraction`; when an update that begins at `begin_ns` ends.
  int64_t EndOfPass(int worker, int64_t step, ElementRange rows, double fraction = 1) const;
  int64_t EndOfUpdate(int worker, int64_t step, int64_t begin_ns) const;
  // When other work at this step, begun now, ends.
  int64_t EndOfWork(int worker, int64_t step, double seconds) const;
  int64_t EndOfWorkFrom(int64_t begin_ns, int worker, int64_t step, double seconds) const;
  const ComputeScript& compute() const { return script_.compute(); }

  // What is exchanged, by whomever.
  const ExchangeSizes& sizes() const { return sizes_; }
  // What `workers` exchange in a step; made once for each group.
  StatusOr<const std::vector<ExchangeItem>*> ItemsOf(const std::vector<int>& workers);

  // After `step` steps, with the weights of the model's arena (averaged ones if the run keeps them):
  // writes a line if an evaluation is due that was not after `since`.
  Status EvaluateIfDue(int64_t since, int64_t step);
  // The run's last step, or the accuracy asked for.
  bool IsEnd(int64_t step) const;

 private:
  EmulatedJob(const LoadedConfig* loaded, const TrainingData* data, const EmulationScript& script,
              TrainingRun run, ScaledOptim optim, TrainingPlan plan);
  Status Prepare();
  Status Measure(ElementRange rows);  // what steps of a script cost that does not say

  const LoadedConfig* const loaded_;
  const TrainingData* const data_;
  EmulationScript script_;
  TrainingRun run_;
  const ScaledOptim optim_;
  const TrainingPlan plan_;
  SharedNet net_;
  EventQueue queue_;
  const SpeedModel speed_;
  VirtualNetwork network_;
  EmulationLog log_;
  RealTimes real_;
  std::set<int> dead_;
  std::map<int, int64_t> missing_ns_;  // processor time, by worker: of the pass that has begun
  ExchangeSizes sizes_;
  std::map<std::vector<int>, std::vector<ExchangeItem>> items_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_EMULATED_JOB_H_
