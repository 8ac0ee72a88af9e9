#include "apps/emulator/rules/synchronous_rule.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/parameter_specs.h"
#include "core/stopwatch.h"
#include "core/units.h"
#include "dist/compression/scheme_choice.h"
#include "optim/gradient_norm.h"

namespace ringtail {

SynchronousRule::SynchronousRule(EmulatedJob* job, int64_t end, Next next)
    : job_(job),
      end_(end),
      next_(std::move(next)),
      sum_(job->arena()),
      workers_(job->FirstWorkers()) {
  const CompressionConfig& config = job->config().dist().compression();
  if (!CompressesAnything(config)) return;
  const auto images = static_cast<double>(job->plan().growth_run().images_per_batch);
  compression_ =
      std::make_unique<WorkerCompression>(job, CodedKind{.config = config, .samples = images});
}

int64_t SynchronousRule::StateBytes() const {
  int64_t bytes = 0;
  for (const std::span<float> block : job_->state()->Blocks()) bytes += std::ssize(block);
  return bytes * static_cast<int64_t>(sizeof(float));
}

Status SynchronousRule::OnJoin(int worker) {
  joining_.push_back(worker);
  return OkStatus();
}

Status SynchronousRule::OnNotice(int worker) {
  std::erase(joining_, worker);
  if (std::erase(workers_, worker) == 0) return OkStatus();
  // Those that joined have the whole state.
  if (workers_.empty() && joining_.empty()) return FailedPrecondition("no worker is left");
  sum_.Undo();
  return BeginStep();
}

Status SynchronousRule::BeginStep() {
  ++attempt_;
  exchange_.reset();
  ended_ = 0;
  begin_ns_ = job_->queue()->now_ns();
  workers_.insert(workers_.end(), joining_.begin(), joining_.end());
  joining_.clear();
  members_.clear();
  for (size_t i = 0; i < workers_.size(); ++i) {
    RT_ASSIGN_OR_RETURN(const ElementRange rows, job_->RowsOf(i, workers_.size()));
    members_.push_back({.worker = workers_[i], .rows = rows});
  }
  RT_RETURN_IF_ERROR(ComputeGradients());
  return BeginExchange();
}

Status SynchronousRule::ComputeGradients() {
  const auto batch = static_cast<double>(job_->plan().growth_run().images_per_batch);
  const CompressionConfig& coding = job_->config().dist().compression();
  sum_.Begin(members_.size(), TakesStatistics(coding, step_));
  const int64_t statistics_steps = members_.size() == 1 ? 1 : coding.statistics_every_steps();
  const bool compresses =
      compression_ != nullptr && (members_.size() > 1 || FindDgc(coding) != nullptr);
  for (size_t i = 0; i < members_.size(); ++i) {
    Member& member = members_[i];
    if (compresses && gradients_.size() == i) {
      RT_ASSIGN_OR_RETURN(gradients_.emplace_back(),
                          ParameterArena::Create(SpecsOf(job_->arena()->parameters()), {}));
    }
    member.gradients = compresses ? gradients_[i].get() : nullptr;
    sum_.BeginWorker(member.gradients);
    RT_ASSIGN_OR_RETURN(member.loss,
                        job_->net()->Compute(step_, member.rows, &sum_, statistics_steps));
    sum_.EndWorker(static_cast<double>(member.rows.count) / batch);
  }
  return OkStatus();
}

ExchangeTime SynchronousRule::Now() const {
  return {.step = step_, .epoch = job_->plan().EpochAt(step_)};
}

StatusOr<std::vector<ExchangeItem>> SynchronousRule::ItemsOf() const {
  const DistConfig& dist = job_->config().dist();
  std::optional<CodedLayers> layers;
  if (compression_ != nullptr) layers = compression_->LayersOf(workers_);
  if (!layers.has_value() && dist.compression().statistics_every_steps() == 1) {
    RT_ASSIGN_OR_RETURN(const std::vector<ExchangeItem>* const items, job_->ItemsOf(workers_));
    return *items;  // the same in every step
  }
  return ItemsOfExchange(job_->sizes(), job_->arena()->parameters(), workers_, *job_->network(),
                         dist, layers.has_value() ? &*layers : nullptr, Now());
}

// When all have offered theirs: what is lost with a worker before has changed no residual.
Status SynchronousRule::ReduceCompressed() {
  std::vector<WorkerCompression::Member> members;
  for (const Member& member : members_) members.push_back({member.worker, member.gradients});
  RT_RETURN_IF_ERROR(compression_->Reduce(Now(), members));
  std::ranges::copy(members[0].arena->grads(), job_->arena()->grads().begin());
  return OkStatus();
}

Status SynchronousRule::BeginExchange() {
  RT_ASSIGN_OR_RETURN(const std::vector<ExchangeItem> items, ItemsOf());
  // As in AllreduceUpdate, whose factor of clipping is not known before all gradients are.
  const bool prepares = members_.size() > 1 && job_->optim().clip_norm() == 0;
  prepares_s_.clear();
  for (const ExchangeItem& item : items) {
    prepares_s_.push_back(prepares ? item.prepares * job_->compute().prepare_ms() * kSecondsPerMs
                                   : 0);
  }
  std::vector<ExchangeItem> all = items;
  all.push_back(RollCallItem(workers_, *job_->network()));
  exchange_ = std::make_unique<VirtualExchange>(
      job_->network(), all, workers_,
      [this](int member, int item) { return OnItemEnded(member, item); },
      [this](int worker, double seconds) { return job_->EndOfWork(worker, step_, seconds); });
  for (size_t m = 0; m < members_.size(); ++m) {
    Member& member = members_[m];
    member.pass_end_ns = job_->BeginPass(member.worker, step_, member.rows);
    member.update_left_s = job_->compute().update_ms() * kSecondsPerMs;
    for (size_t i = 0; i < items.size(); ++i) {
      ScheduleReady(static_cast<int>(m), static_cast<int>(i),
                    job_->EndOfPass(member.worker, step_, member.rows, items[i].ready));
    }
  }
  return OkStatus();
}

void SynchronousRule::ScheduleReady(int member, int item, int64_t time_ns) {
  const int worker = members_[static_cast<size_t>(member)].worker;
  job_->queue()->Schedule(time_ns, worker, [this, attempt = attempt_, worker, member, item] {
    if (attempt == attempt_ && !job_->is_dead(worker)) exchange_->Ready(member, item);
    return OkStatus();
  });
}

// Work on the update, after what the worker computes until then.
void SynchronousRule::Update(Member* member, double seconds) const {
  const int64_t begin_ns =
      std::max({job_->queue()->now_ns(), member->pass_end_ns, member->prepared_ns});
  member->prepared_ns = job_->EndOfWorkFrom(begin_ns, member->worker, step_, seconds);
  job_->network()->cores()->Computes(member->worker, member->prepared_ns);
  member->update_ns += member->prepared_ns - begin_ns;
  member->update_left_s -= seconds;
}

Status SynchronousRule::OnItemEnded(int member, int item) {
  Member& m = members_[static_cast<size_t>(member)];
  const int roll_call = exchange_->items() - 1;
  if (item + 1 < roll_call) {
    const double prepares_s = prepares_s_[static_cast<size_t>(item)];
    if (prepares_s > 0) Update(&m, prepares_s);
  } else if (item + 1 == roll_call) {
    ScheduleReady(member, roll_call, job_->queue()->now_ns());
    Update(&m, m.update_left_s);
  } else if (++ended_ == members_.size()) {
    // The next step begins when the last one is ready for it. (Real ranks need not wait for that one;
    // they do when gradients are added up.)
    int64_t end_ns = job_->queue()->now_ns();
    for (const Member& each : members_) end_ns = std::max(end_ns, each.prepared_ns);
    // Not from within the exchange, which the next step replaces. A worker that has died in the
    // middle of its update is missed first.
    job_->queue()->Schedule(end_ns, m.worker, [this, attempt = attempt_] {
      const auto is_dead = [this](const Member& each) { return job_->is_dead(each.worker); };
      return attempt == attempt_ && std::ranges::none_of(members_, is_dead) ? EndStep()
                                                                            : OkStatus();
    });
  }
  return OkStatus();
}

// False if a loss or gradient is not finite.
StatusOr<bool> SynchronousRule::UpdateWeights() {
  const Stopwatch watch;
  if (members_[0].gradients != nullptr) RT_RETURN_IF_ERROR(ReduceCompressed());
  LossResult loss;
  for (const Member& member : members_) loss += member.loss;
  const double mean = 1.0 / static_cast<double>(std::max<int64_t>(loss.count, 1));
  const double norm = GradientNorm(*job_->arena(), mean);
  if (!std::isfinite(loss.loss_sum) || !std::isfinite(norm)) return false;
  job_->state()->optimizer()->Step(step_, job_->RateOf(step_),
                                   mean * ClipFactor(norm, job_->optim().clip_norm()));
  if (job_->state()->average() != nullptr) job_->state()->average()->Update(step_);
  job_->real()->update += watch.Seconds();
  return true;
}

Status SynchronousRule::EndStep() {
  const int64_t now_ns = job_->queue()->now_ns();
  RT_ASSIGN_OR_RETURN(const bool finite, UpdateWeights());
  if (!finite) {
    job_->log()->summary().not_finite = fmt::format("the loss or gradient of step {}", step_ + 1);
    finished_ = true;
    return OkStatus();
  }
  for (const Member& member : members_) {
    const int64_t compute_ns = member.pass_end_ns - begin_ns_ + member.update_ns;
    job_->log()->AddStep(now_ns, {.worker = member.worker,
                                  .step = step_ + 1,
                                  .epoch = job_->plan().EpochAt(step_ + 1),
                                  .learning_rate = job_->RateOf(step_),
                                  .loss = member.loss,
                                  .compute_ns = compute_ns,
                                  .blocked_ns = now_ns - begin_ns_ - compute_ns});
  }
  ++step_;
  job_->log()->summary().steps = step_;
  RT_RETURN_IF_ERROR(job_->EvaluateIfDue(step_ - 1, step_));
  finished_ = job_->IsEnd(step_);
  if (finished_) return OkStatus();
  job_->net()->Forget(step_);
  if (step_ != end_) return BeginStep();
  ++attempt_;
  exchange_.reset();
  return next_();
}

}  // namespace ringtail
