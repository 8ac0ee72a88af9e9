#include "apps/emulator/rules/server_rule.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "apps/parameter_server/server_optimizer.h"
#include "core/stopwatch.h"
#include "dist/parameter_server/rule_choice.h"
#include "dist/parameter_server/shard_map.h"

namespace ringtail {
namespace {

constexpr int64_t kRequestBytes = 64;
constexpr double kSecondsPerMs = 1e-3;
constexpr int kMostNotFiniteInARow = 10;

}  // namespace

StatusOr<std::unique_ptr<EmulatedRule>> ServerRule::Create(EmulatedJob* job) {
  const AsynchronousConfig& config = job->config().dist().asynchronous();
  const AsynchronousRule rule = RuleOf(config);
  RT_RETURN_IF_ERROR(CheckServerOptimizer(rule, job->optim()));
  std::unique_ptr<ServerRule> made(new ServerRule(job, rule));
  RT_RETURN_IF_ERROR(
      made->CreateServers(ServerOptimizer(job->optim(), config, rule, job->script().workers())));
  for (const int worker : job->FirstWorkers()) made->AddWorker(worker);
  return std::unique_ptr<EmulatedRule>(std::move(made));
}

ServerRule::ServerRule(EmulatedJob* job, const AsynchronousRule& rule)
    : job_(job),
      rule_(rule),
      overlap_(job->config().dist().asynchronous().overlap() && !rule.synchronous()),
      images_per_step_(job->plan().growth_run().images_per_batch),
      images_per_push_(job->config().train().batch() * rule.grouping.gradients_per_push),
      tickets_(job->plan().batches_per_epoch() * images_per_step_,
               job->plan().total_steps() * images_per_step_) {}

Status ServerRule::CreateServers(const OptimConfig& optim) {
  const AsynchronousConfig& config = job_->config().dist().asynchronous();
  const int asked = config.servers() > 0 ? config.servers() : job_->script().workers();
  std::vector<int64_t> bytes;
  for (const Parameter& parameter : job_->arena()->parameters()) {
    bytes.push_back(parameter.elements * static_cast<int64_t>(sizeof(float)));
  }
  const ShardMap map =
      DivideIntoShards(bytes, std::min<int>(asked, static_cast<int>(bytes.size())));
  int64_t all_bytes = 0;
  for (const int64_t each : bytes) all_bytes += each;
  const double own_rate = optim.learning_rate() / job_->optim().learning_rate();
  const auto step = [this](int64_t images) {
    return std::min(images / images_per_step_, job_->plan().total_steps() - 1);
  };
  for (size_t i = 0; i < map.parameters.size(); ++i) {
    WeightServerOptions options{
        .optim = optim,
        .shard = {.rule = rule_,
                  .images_per_epoch = job_->plan().batches_per_epoch() * images_per_step_,
                  .versions = config.versions(),
                  .format = config.versions_in_bf16() ? VersionRing::Format::kBf16
                                                      : VersionRing::Format::kFloat},
        .parameters = map.parameters[i],
        .alone = map.parameters.size() == 1,
        .has_statistics = i == 0,
        .rate = [this, step,
                 own_rate](int64_t images) { return own_rate * job_->RateOf(step(images)); },
        .step = step};
    Server server{.update_s = job_->compute().update_ms() * kSecondsPerMs *
                              static_cast<double>(map.bytes[i]) / static_cast<double>(all_bytes)};
    RT_ASSIGN_OR_RETURN(server.weights, WeightServer::Create(options, *job_->arena()));
    servers_.push_back(std::move(server));
  }
  return OkStatus();
}

void ServerRule::AddWorker(int worker) {
  const ParameterArena& model = *job_->arena();
  Seat& seat = seats_[worker];
  seat.weights = AlignedBuffer(model.values().size_bytes());
  seat.statistics = AlignedBuffer(model.buffer_values().size_bytes());
  std::ranges::copy(servers_[0].weights->arena()->buffer_values(),
                    seat.statistics.floats().begin());
  seat.versions.resize(servers_.size());
  seat.idle_since_ns = job_->queue()->now_ns();
  for (Server& server : servers_) server.weights->shard()->Join(worker);
}

Status ServerRule::Begin() {
  for (auto& [worker, seat] : seats_) RT_RETURN_IF_ERROR(RequestPull(worker));
  return OkStatus();
}

Status ServerRule::OnJoin(int worker) {
  if (finished_) return OkStatus();
  AddWorker(worker);
  return RequestPull(worker);
}

// Its tickets go back, and no one waits for it any more.
Status ServerRule::OnNotice(int worker) {
  if (seats_.erase(worker) == 0) return OkStatus();
  if (seats_.empty()) return FailedPrecondition("no worker is left");
  idle_.erase(worker);
  statistics_.erase(worker);
  tickets_.Remove(worker);
  for (size_t i = 0; i < servers_.size(); ++i) {
    servers_[i].weights->shard()->Remove(worker);
    RT_RETURN_IF_ERROR(Release(i));
  }
  LogUpdate();
  RT_RETURN_IF_ERROR(EvaluateIfDue());
  return Wake();
}

Status ServerRule::Serve(size_t server, std::function<Status()> action) {
  servers_[server].waiting.push_back(std::move(action));
  return servers_[server].busy ? OkStatus() : ServeNext(server);
}

// An update keeps the server busy.
Status ServerRule::ServeNext(size_t server) {
  Server& s = servers_[server];
  while (!s.waiting.empty() && !finished_) {
    const auto action = std::move(s.waiting.front());
    s.waiting.pop_front();
    const int64_t version = s.weights->shard()->version();
    s.busy = true;
    RT_RETURN_IF_ERROR(action());
    s.busy = false;
    if (s.weights->shard()->version() == version || s.update_s == 0) continue;
    s.busy = true;
    const auto host = static_cast<int>(server);
    job_->queue()->Schedule(job_->EndOfWork(host, version, s.update_s), host, [this, server] {
      servers_[server].busy = false;
      return ServeNext(server);
    });
    return OkStatus();
  }
  return OkStatus();
}

Status ServerRule::RequestPull(int worker) {
  seats_[worker].missing = servers_.size();
  for (size_t i = 0; i < servers_.size(); ++i) {
    job_->network()->Send(worker, static_cast<int>(i), kRequestBytes, [this, i, worker] {
      return Serve(i, [this, i, worker] { return AnswerPull(i, worker); });
    });
  }
  return OkStatus();
}

Status ServerRule::AnswerPull(size_t server, int worker) {
  if (!Counts(worker)) return OkStatus();
  Seat& seat = seats_[worker];
  WeightServer* const weights = servers_[server].weights.get();
  AlignedBuffer part(weights->arena()->values().size_bytes());
  const auto reply = weights->shard()->Pull(worker, part.floats());
  if (!reply) return OkStatus();  // until Release
  weights->Scatter(part.floats(), seat.weights.floats());
  seat.versions[server] = reply->version;
  if (server == 0 && rule_.synchronous()) {
    std::ranges::copy(weights->arena()->buffer_values(), seat.statistics.floats().begin());
  }
  job_->network()->Send(static_cast<int>(server), worker, weights->bytes(),
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
                                  {.weights = &seat.weights, .statistics = &seat.statistics}));
  push->versions = seat.versions;
  seat.pulled = false;
  seat.computing = true;
  const int64_t begin_ns = job_->queue()->now_ns();
  const int64_t end_ns = job_->BeginPass(worker, step, {.offset = 0, .count = ticket.rows});
  job_->queue()->Schedule(end_ns, worker, [this, worker, push, begin_ns] {
    if (!Counts(worker)) return OkStatus();
    Seat& own = seats_[worker];
    const int64_t now_ns = job_->queue()->now_ns();
    job_->log()->AddStep(now_ns,
                         {.worker = worker,
                          .step = ++own.steps,
                          .epoch = job_->plan().EpochAt(push->ticket.first / images_per_step_),
                          .learning_rate = servers_[0].weights->rate(),
                          .loss = push->loss,
                          .compute_ns = now_ns - begin_ns,
                          .blocked_ns = begin_ns - own.idle_since_ns});
    own.idle_since_ns = now_ns;
    own.computing = false;
    return SendPush(worker, push);
  });
  return overlap_ ? RequestPull(worker) : OkStatus();
}

Status ServerRule::SendPush(int worker, const std::shared_ptr<ServerPush>& push) {
  ++seats_[worker].under_way;
  for (size_t i = 0; i < servers_.size(); ++i) {
    job_->network()->Send(
        worker, static_cast<int>(i), servers_[i].weights->bytes(), [this, i, worker, push] {
          return Serve(i, [this, i, worker, push] { return Deliver(i, worker, push); });
        });
  }
  return overlap_ ? StartIfReady(worker) : RequestPull(worker);
}

// What still arrives of a worker that was removed must not count: others have its images.
Status ServerRule::Deliver(size_t server, int worker, const std::shared_ptr<ServerPush>& push) {
  if (!tickets_.Holds(worker, push->ticket)) return OkStatus();
  const Stopwatch watch;
  WeightServer* const weights = servers_[server].weights.get();
  if (server == 0 && push->finite) {
    statistics_[worker] = push->statistics;
    MeanStatistics();
  }
  const PushResult result = weights->shard()->Push({.worker = worker,
                                                    .base_version = push->versions[server],
                                                    .images = push->ticket.rows,
                                                    .gradient = push->gradients[server].floats(),
                                                    .finite = push->finite,
                                                    .norm = push->norm});
  push->gradients[server] = AlignedBuffer();
  job_->real()->update += watch.Seconds();
  ++push->delivered;
  if (result.outcome == PushOutcome::kRefused) {
    ++push->refused;
  } else if (server == 0) {
    LogPush(result, push->ticket.rows);
    LogUpdate();
  }
  RT_RETURN_IF_ERROR(Release(server));
  return push->delivered == servers_.size() ? OnDelivered(worker, *push) : OkStatus();
}

// Its images come again if no server has taken them.
Status ServerRule::OnDelivered(int worker, const ServerPush& push) {
  if (push.refused == push.delivered) {
    tickets_.GiveBack(worker, push.ticket);
    ++job_->log()->summary().discarded;
  } else {
    tickets_.Use(worker, push.ticket);
  }
  not_finite_in_a_row_ = push.finite ? 0 : not_finite_in_a_row_ + 1;
  if (not_finite_in_a_row_ > kMostNotFiniteInARow) {
    job_->log()->summary().not_finite =
        fmt::format("{} gradients in a row, up to image {}", not_finite_in_a_row_,
                    servers_[0].weights->shard()->images());
    finished_ = true;
    return OkStatus();
  }
  if (seats_.contains(worker)) --seats_[worker].under_way;
  if (tickets_.finished()) return End();
  RT_RETURN_IF_ERROR(EvaluateIfDue());
  if (finished_) return OkStatus();
  RT_RETURN_IF_ERROR(Wake());
  return StartIfReady(worker);
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
    RT_RETURN_IF_ERROR(
        Serve(server, [this, server, worker] { return AnswerPull(server, worker); }));
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
