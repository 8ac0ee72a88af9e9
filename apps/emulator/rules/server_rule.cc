#include "apps/emulator/rules/server_rule.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/parameter_server/server_optimizer.h"
#include "core/stopwatch.h"
#include "core/units.h"
#include "dist/compression/scheme_choice.h"
#include "dist/parameter_server/rule_choice.h"
#include "dist/parameter_server/wire/messages.h"

namespace ringtail {
namespace {

constexpr auto kRequestBytes = static_cast<int64_t>(kServerMessageBytes);

}  // namespace

StatusOr<std::unique_ptr<EmulatedRule>> ServerRule::Create(EmulatedJob* job) {
  const AsynchronousConfig& config = job->config().dist().asynchronous();
  const AsynchronousRule rule = RuleOf(config);
  RT_RETURN_IF_ERROR(CheckServerOptimizer(rule, job->optim()));
  std::unique_ptr<ServerRule> made(new ServerRule(job, rule));
  RT_RETURN_IF_ERROR(made->CreateServers());
  for (const int worker : job->FirstWorkers()) RT_RETURN_IF_ERROR(made->AddWorker(worker));
  return std::unique_ptr<EmulatedRule>(std::move(made));
}

ServerRule::ServerRule(EmulatedJob* job, const AsynchronousRule& rule)
    : job_(job),
      rule_(rule),
      optim_(ServerOptimizer(job->optim(), job->config().dist().asynchronous(), rule,
                             job->script().workers())),
      overlap_(PullsAhead(job->config().dist().asynchronous())),
      compresses_(CompressesAnything(job->config().dist().compression())),
      images_per_step_(job->plan().growth_run().images_per_batch),
      images_per_push_(int64_t{job->config().train().batch()} * rule.grouping.gradients_per_push),
      tickets_(job->plan().batches_per_epoch() * images_per_step_,
               job->plan().total_steps() * images_per_step_),
      guard_(WatchLoss(images_per_push_, job->plan().batches_per_epoch() * images_per_step_,
                       job->classes())) {}

Status ServerRule::Begin() {
  for (auto& [worker, seat] : seats_) RT_RETURN_IF_ERROR(RequestPull(worker));
  return OkStatus();
}

Status ServerRule::RequestPull(int worker) {
  seats_[worker].missing = servers_.size();
  for (size_t i = 0; i < servers_.size(); ++i) {
    job_->network()->Send(worker, static_cast<int>(i), kRequestBytes,
                          [this, i, worker] { return ServePull(i, worker); });
  }
  return OkStatus();
}

Status ServerRule::ServePull(size_t server, int worker) {
  return servers_[server].queue->Serve([this, server, worker]() -> StatusOr<double> {
    RT_RETURN_IF_ERROR(AnswerPull(server, worker));
    return 0;
  });
}

Status ServerRule::AnswerPull(size_t server, int worker) {
  if (finished_ || !Counts(worker)) return OkStatus();
  Seat& seat = seats_[worker];
  WeightServer* const weights = servers_[server].weights.get();
  const size_t size = weights->arena()->values().size_bytes();
  AlignedBuffer part(size), pulled(size);
  const auto reply = weights->shard()->Pull(worker, part.floats());
  if (!reply) return OkStatus();  // until Release
  PullDecoder& decoder = seat.pulls[server];
  const std::span<const std::byte> payload =
      servers_[server].pulls.Encode(part.floats(), reply->version, decoder.key());
  const auto bytes = static_cast<int64_t>(payload.size());
  RT_RETURN_IF_ERROR(decoder.Decode(payload, pulled.floats()));
  weights->Scatter(pulled.floats(), seat.weights.floats());
  seat.versions[server] = reply->version;
  if (server == 0 && rule_.synchronous()) {
    std::ranges::copy(weights->arena()->buffer_values(), seat.statistics.floats().begin());
  }
  job_->network()->Send(static_cast<int>(server), worker, bytes,
                        [this, worker] { return OnPulled(worker); });
  return OkStatus();
}

Status ServerRule::OnPulled(int worker) {
  if (!Counts(worker)) return OkStatus();
  Seat& seat = seats_[worker];
  if (--seat.missing > 0) return OkStatus();
  seat.pulled = true;
  return StartIfReady(worker);
}

// One push may be under way while the next gradient is computed.
Status ServerRule::StartIfReady(int worker) {
  const auto found = seats_.find(worker);
  if (finished_ || found == seats_.end() || job_->is_dead(worker)) return OkStatus();
  Seat& seat = found->second;
  if (!seat.pulled || seat.computing || seat.under_way > 1) return OkStatus();
  const std::optional<Ticket> ticket = tickets_.Take(worker, images_per_push_);
  if (!ticket) {
    idle_.insert(worker);
    return OkStatus();
  }
  return Compute(worker, *ticket);
}

Status ServerRule::Compute(int worker, const Ticket& ticket) {
  Seat& seat = seats_[worker];
  const int64_t step = ticket.first / images_per_step_;
  std::vector<const WeightServer*> servers;
  for (const Server& server : servers_) servers.push_back(server.weights.get());
  RT_ASSIGN_OR_RETURN(const std::shared_ptr<ServerPush> push,
                      ComputePush(job_, ticket, servers,
                                  {.weights = &seat.weights,
                                   .statistics = &seat.statistics,
                                   .compression = seat.compression.get()}));
  push->versions = seat.versions;
  seat.pulled = false;
  seat.computing = true;
  const int64_t begin_ns = job_->queue()->now_ns();
  const int64_t end_ns = job_->BeginPass(worker, step, {.offset = 0, .count = ticket.rows});
  const double encode_s = compresses_ ? job_->compute().encode_ms() * kSecondsPerMs : 0;
  job_->queue()->Schedule(end_ns, worker, [this, worker, push, begin_ns, step, encode_s] {
    if (encode_s == 0) return OnComputed(worker, push, begin_ns);
    job_->queue()->Schedule(
        job_->EndOfWork(worker, step, encode_s), worker,
        [this, worker, push, begin_ns] { return OnComputed(worker, push, begin_ns); });
    return OkStatus();
  });
  return overlap_ ? RequestPull(worker) : OkStatus();
}

Status ServerRule::OnComputed(int worker, const std::shared_ptr<ServerPush>& push,
                              int64_t begin_ns) {
  if (!Counts(worker)) return OkStatus();
  Seat& seat = seats_[worker];
  const int64_t now_ns = job_->queue()->now_ns();
  job_->log()->AddStep(now_ns,
                       {.worker = worker,
                        .step = ++seat.steps,
                        .epoch = job_->plan().EpochAt(push->ticket.first / images_per_step_),
                        .learning_rate = servers_[0].weights->rate(),
                        .loss = push->loss,
                        .compute_ns = now_ns - begin_ns,
                        .blocked_ns = begin_ns - seat.idle_since_ns});
  seat.idle_since_ns = now_ns;
  seat.computing = false;
  return SendPush(worker, push);
}

Status ServerRule::SendPush(int worker, const std::shared_ptr<ServerPush>& push) {
  ++seats_[worker].under_way;
  for (size_t i = 0; i < servers_.size(); ++i) {
    job_->network()->Send(worker, static_cast<int>(i), push->bytes[i], [this, i, worker, push] {
      return servers_[i].queue->Serve([this, i, worker, push] { return Deliver(i, worker, push); });
    });
  }
  return overlap_ ? StartIfReady(worker) : RequestPull(worker);
}

// What still arrives of a worker that was removed must not count: others have its images.
StatusOr<double> ServerRule::Deliver(size_t server, int worker,
                                     const std::shared_ptr<ServerPush>& push) {
  if (finished_ || !tickets_.Holds(worker, push->ticket)) return 0;
  const Stopwatch watch;
  WeightServer* const weights = servers_[server].weights.get();
  if (server == 0 && push->finite) {
    statistics_[worker] = push->statistics;
    MeanStatistics();
  }
  const int64_t version = weights->shard()->version();
  const PushResult result = weights->shard()->Push({.worker = worker,
                                                    .base_version = push->versions[server],
                                                    .images = push->ticket.rows,
                                                    .gradient = push->gradients[server].floats(),
                                                    .finite = push->finite,
                                                    .norm = push->norm});
  push->gradients[server] = AlignedBuffer();
  job_->real()->update += watch.Seconds();
  ++push->delivered;
  if (server == 0) push->staleness = result.staleness;
  if (result.outcome == PushOutcome::kRefused) {
    ++push->refused;
  } else if (server == 0) {
    LogPush(result, push->ticket.rows);
    LogUpdate();
  }
  RT_RETURN_IF_ERROR(Release(server));
  if (push->delivered == servers_.size()) RT_RETURN_IF_ERROR(OnDelivered(worker, *push));
  const Server& s = servers_[server];
  return s.decode_s + (result.version == version ? 0 : s.update_s);
}

// Its images come again if no server has taken them.
Status ServerRule::OnDelivered(int worker, const ServerPush& push) {
  if (push.refused == push.delivered) {
    tickets_.GiveBack(worker, push.ticket);
    ++job_->log()->summary().discarded;
  } else {
    tickets_.Use(worker, push.ticket);
  }
  Watch(push);
  if (finished_) return OkStatus();
  if (seats_.contains(worker)) --seats_[worker].under_way;
  if (tickets_.finished()) return End();
  RT_RETURN_IF_ERROR(EvaluateIfDue());
  if (finished_) return OkStatus();
  RT_RETURN_IF_ERROR(Wake());
  return StartIfReady(worker);
}

void ServerRule::Watch(const ServerPush& push) {
  EmulationSummary& summary = job_->log()->summary();
  const DivergenceGuard::Verdict verdict =
      guard_.Add(push.loss.loss_sum, push.loss.count, push.staleness, push.finite);
  if (verdict == DivergenceGuard::Verdict::kFine) return;
  const std::string what =
      fmt::format("{}; {}", guard_.report(), AdviceAgainstDivergence(rule_, MomentumOf(optim_)));
  finished_ = verdict == DivergenceGuard::Verdict::kNotFinite;
  (finished_ ? summary.not_finite : summary.diverges) = what;
}

void ServerRule::LogPush(const PushResult& result, int64_t images) {
  job_->log()->summary().staleness.Add(result.staleness);
  update_line_.pushes += 1;
  update_line_.images += images;
  update_line_.staleness += result.staleness;
  update_line_.most = std::max(update_line_.most, result.staleness);
}

// A push, a worker that is gone, or the end may have completed a group.
void ServerRule::LogUpdate() {
  const int64_t version = servers_[0].weights->shard()->version();
  if (version == logged_version_) return;
  logged_version_ = version;
  update_line_.version = version;
  update_line_.learning_rate = servers_[0].weights->rate();
  job_->log()->AddUpdate(job_->queue()->now_ns(), std::exchange(update_line_, {}));
}

// In the order of the workers.
void ServerRule::MeanStatistics() {
  const std::span<float> mean = servers_[0].weights->arena()->buffer_values();
  const double weight = 1.0 / static_cast<double>(statistics_.size());
  std::ranges::fill(mean, 0.0F);
  for (const auto& [worker, own] : statistics_) {
    for (size_t i = 0; i < own.size(); ++i) mean[i] += static_cast<float>(weight * own[i]);
  }
}

// Workers that were told to wait.
Status ServerRule::Release(size_t server) {
  for (const int worker : servers_[server].weights->shard()->TakeReleased()) {
    RT_RETURN_IF_ERROR(ServePull(server, worker));
  }
  return OkStatus();
}

// Images may have come back.
Status ServerRule::Wake() {
  for (const int worker : std::exchange(idle_, {})) RT_RETURN_IF_ERROR(StartIfReady(worker));
  return OkStatus();
}

Status ServerRule::EvaluateIfDue() {
  int64_t images = servers_[0].weights->shard()->images();
  for (const Server& server : servers_) {
    images = std::min(images, server.weights->shard()->images());
  }
  const int64_t step = images / images_per_step_;
  if (step <= evaluated_step_) return OkStatus();
  const int64_t since = std::exchange(evaluated_step_, step);
  job_->log()->summary().steps = step;
  if (!job_->plan().EvaluationIsDue(since, step)) return OkStatus();
  CopyToModel();
  RT_RETURN_IF_ERROR(job_->EvaluateIfDue(since, step));
  finished_ = job_->IsEnd(step);
  job_->net()->Forget(tickets_.UsedUpTo() / images_per_step_);
  return OkStatus();
}

// The weights of all servers as they are now, and their averages.
void ServerRule::CopyToModel() {
  ParameterArena* const model = job_->arena();
  WeightAverage* const average = job_->state()->average();
  for (const Server& server : servers_) {
    server.weights->Scatter(server.weights->arena()->values(), model->values());
    if (average == nullptr) continue;
    server.weights->Scatter(server.weights->average()->values(), average->values());
  }
  WeightServer* const first = servers_[0].weights.get();
  std::ranges::copy(first->arena()->buffer_values(), model->buffer_values().begin());
  if (average == nullptr) return;
  std::ranges::copy(first->average()->buffers(), average->buffers().begin());
}

// The last group may be incomplete.
Status ServerRule::End() {
  for (Server& server : servers_) server.weights->shard()->Finish();
  LogUpdate();
  finished_ = true;
  CopyToModel();
  const int64_t last = job_->plan().total_steps();
  job_->log()->summary().steps = last;
  return job_->EvaluateIfDue(std::min(evaluated_step_, last - 1), last);
}

}  // namespace ringtail
