#include "apps/emulator/emulation.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <set>

#include "apps/emulator/rules/local_rounds_rule.h"
#include "apps/emulator/rules/post_local_rule.h"
#include "apps/emulator/rules/server_rule.h"
#include "apps/emulator/rules/synchronous_rule.h"
#include "apps/trainer/checkpoint/model_file.h"
#include "apps/trainer/local/local_period.h"
#include "apps/trainer/local/round_report.h"
#include "core/stop_signal.h"
#include "dist/config_check.h"
#include "dist/parameter_server/rule_choice.h"
#include "optim/weight_average.h"

namespace ringtail {
namespace {

// What the script says will happen.
class ScriptedEvents {
 public:
  ScriptedEvents(EmulatedJob* job, EmulatedRule* rule) : job_(job), rule_(rule) {
    for (const int worker : job->FirstWorkers()) joined_.insert(worker);
  }

  void Schedule() {
    const EmulationScript& script = job_->script();
    for (const KillScript& kill : script.kill()) ScheduleDeath(kill);
    for (int i = 0; i < script.join_size(); ++i) {
      const int worker = script.workers() + i;
      job_->queue()->Schedule(Nanoseconds(script.join(i).at_s()), worker,
                              [this, worker] { return Join(worker); });
    }
  }

 private:
  void ScheduleDeath(const KillScript& kill) {
    const int worker = kill.worker();
    const int64_t at_ns = Nanoseconds(kill.at_s());
    job_->queue()->Schedule(at_ns, worker, [this, worker] {
      Log(worker, "dies");
      job_->MarkDead(worker);
      return rule_->OnDeath(worker);
    });
    job_->queue()->Schedule(After(at_ns, kill.noticed_after_s()), worker, [this, worker] {
      Log(worker, "is missed");
      return rule_->OnNotice(worker);
    });
  }

  // The lowest worker that lives and has joined sends its state.
  Status Join(int worker) {
    const auto source = std::ranges::find_if(joined_, [this](int w) { return !job_->is_dead(w); });
    if (source == joined_.end()) return OkStatus();  // no worker is left to join
    Log(worker, "asks to join");
    job_->network()->Send(*source, worker, rule_->StateBytes(), [this, worker] {
      if (job_->is_dead(worker)) return OkStatus();
      Log(worker, "joins");
      joined_.insert(worker);
      return rule_->OnJoin(worker);
    });
    return OkStatus();
  }

  void Log(int worker, const char* what) {
    job_->log()->AddEvent(job_->queue()->now_ns(), worker, what);
  }

  EmulatedJob* const job_;
  EmulatedRule* const rule_;
  std::set<int> joined_;  // the first ones, too; also those that have died since
};

// A mean of one changes nothing: every step is an update of its own, as in LocalUpdate.
bool TakesRounds(const EmulatedJob& job) {
  if (!UsesLocalRounds(job.config().dist())) return false;
  const EmulationScript& script = job.script();
  return script.workers() + script.join_size() > 1 ||
         !RuleOf(job.config().dist().local()).averages();
}

StatusOr<std::unique_ptr<EmulatedRule>> MakeRule(EmulatedJob* job) {
  if (UsesServers(job->config().dist().asynchronous())) return ServerRule::Create(job);
  if (!TakesRounds(*job)) {
    return std::unique_ptr<EmulatedRule>(std::make_unique<SynchronousRule>(job));
  }
  const LocalPeriod period(job->config().dist().local(), job->optim(), &job->plan());
  if (period.first_step() > 0) {
    return std::unique_ptr<EmulatedRule>(std::make_unique<PostLocalRule>(job, period.first_step()));
  }
  return LocalRoundsRule::Create(job, {.workers = job->FirstWorkers()});
}

}  // namespace

StatusOr<Emulation> Emulation::Create(const LoadedConfig* loaded, const TrainingData* data,
                                      const EmulationScript& script) {
  const Stopwatch watch;
  RT_ASSIGN_OR_RETURN(std::unique_ptr<EmulatedJob> job, EmulatedJob::Create(loaded, data, script));
  RT_ASSIGN_OR_RETURN(std::unique_ptr<EmulatedRule> rule, MakeRule(job.get()));
  return Emulation(watch, data, std::move(job), std::move(rule));
}

Status Emulation::Run() {
  ScriptedEvents events(job_.get(), rule_.get());
  events.Schedule();
  EventQueue* const queue = job_->queue();
  RT_RETURN_IF_ERROR(rule_->Begin());
  while (!rule_->finished()) {
    if (StopSignal() != 0) return Cancelled("a signal asked to stop");
    if (queue->empty()) return FailedPrecondition("all workers are dead, and none joins");
    const Status status = queue->RunNext();
    if (status.ok()) continue;
    return status.Annotate(fmt::format("at {:.3f} virtual s", Seconds(queue->now_ns())));
  }
  return OkStatus();
}

EmulationResult Emulation::Result() const {
  EmulationSummary summary = job_->log()->summary();
  summary.virtual_s = Seconds(job_->queue()->now_ns());
  summary.sent_bytes = job_->network()->sent_bytes();
  const std::span<const float> weights = job_->arena()->values();
  return EmulationResult{.lines = job_->log()->text(),
                         .summary = summary,
                         .compute = job_->compute(),
                         .weights = {weights.begin(), weights.end()},
                         .pass_times = job_->net()->times(),
                         .real = *job_->real(),
                         .real_s = watch_.Seconds()};
}

Status Emulation::WriteNetwork(const std::string& path) {
  WeightAverage* const average = job_->state()->average();
  if (average != nullptr) average->Swap();
  Status status = WriteModelFile(path, *job_->arena(),
                                 ModelMetadata(job_->config(), data_->dataset->class_names()));
  if (average != nullptr) average->Swap();
  return status;
}

}  // namespace ringtail
