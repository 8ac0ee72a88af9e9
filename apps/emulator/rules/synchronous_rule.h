// SynchronousRule: every step all workers add up their gradients and make the same update, as
// AllreduceUpdate (apps/trainer/update/allreduce_update.h) does among real ranks.
//
//   worker 0   |forward|backward   |prepare 0, 1|.|update|.|
//   its wire            [sums][ 0 ][   1   ][   2   ][roll call]  next step
//   worker 1   |forward    |backward              |  update  |
//
// Gradients travel through dist.compression, if there is any, with residuals for each worker.
// One set of weights serves all. Gradients are added up in the order of the workers, which equals a
// real allreduce to rounding (its plan has an order of its own). A worker that dies holds the others
// up until they notice; then the step is computed again without it, with its rows divided among the
// others. A worker that joins takes part from the next step on.
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_APPS_EMULATOR_RULES_SYNCHRONOUS_RULE_H_
#define RINGTAIL_APPS_EMULATOR_RULES_SYNCHRONOUS_RULE_H_

#include <functional>
#include <memory>
#include <vector>

#include "apps/emulator/clock/virtual_exchange.h"
#include "apps/emulator/emulated_job.h"
#include "apps/emulator/rules/emulated_rule.h"
#include "apps/emulator/rules/gradient_sum.h"
#include "apps/emulator/rules/worker_compression.h"

namespace ringtail {

class SynchronousRule : public EmulatedRule {
 public:
  // After `end` steps, unless the run is over then, `next` takes over: the state is the job's.
  using Next = std::function<Status()>;
  explicit SynchronousRule(EmulatedJob* job, int64_t end = kNever, Next next = {});

  Status Begin() override { return BeginStep(); }
  Status OnDeath(int /*worker*/) override { return OkStatus(); }
  Status OnNotice(int worker) override;
  Status OnJoin(int worker) override;
  int64_t StateBytes() const override;
  bool finished() const override { return finished_; }
  // Of the next step, and those that would join it.
  const std::vector<int>& workers() const { return workers_; }
  const std::vector<int>& joining() const { return joining_; }

 private:
  static constexpr int64_t kNever = -1;
  struct Member {
    int worker = 0;
    ElementRange rows;
    LossResult loss;
    int64_t pass_end_ns = 0;
    int64_t prepared_ns = 0;  // when what was prepared of the update until now will be done
    int64_t update_ns = 0;    // that took
    double update_left_s = 0;
    ParameterArena* gradients = nullptr;  // its own; null: added up
  };

  Status BeginStep();
  Status ComputeGradients();
  StatusOr<std::vector<ExchangeItem>> ItemsOf() const;
  ExchangeTime Now() const;
  Status ReduceCompressed();
  Status BeginExchange();
  void ScheduleReady(int member, int item, int64_t time_ns);
  Status OnItemEnded(int member, int item);
  void Update(Member* member, double seconds) const;
  Status EndStep();
  StatusOr<bool> UpdateWeights();

  EmulatedJob* const job_;
  const int64_t end_;
  const Next next_;
  GradientSum sum_;
  std::vector<int> workers_, joining_;
  std::vector<Member> members_;  // of this step
  std::unique_ptr<VirtualExchange> exchange_;
  std::vector<double> prepares_s_;                          // by item
  std::unique_ptr<WorkerCompression> compression_;          // null: none
  std::vector<std::unique_ptr<ParameterArena>> gradients_;  // by member, if compressed
  int64_t step_ = 0;                                        // steps done
  int64_t attempt_ = 0;  // of any step: events of earlier ones no longer count
  int64_t begin_ns_ = 0;
  size_t ended_ = 0;  // members that have ended the step
  bool finished_ = false;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_RULES_SYNCHRONOUS_RULE_H_
