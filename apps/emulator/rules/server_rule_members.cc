// The servers at the start, and workers that come and go.
#include <algorithm>
#include <utility>

#include "apps/emulator/rules/server_rule.h"
#include "core/units.h"
#include "dist/parameter_server/shard_map.h"

namespace ringtail {

Status ServerRule::CreateServers() {
  const AsynchronousConfig& config = job_->config().dist().asynchronous();
  const int workers = job_->script().workers();
  const int asked = config.servers() > 0 ? config.servers() : workers;
  std::vector<int64_t> bytes;
  for (const Parameter& parameter : job_->arena()->parameters()) {
    bytes.push_back(parameter.elements * static_cast<int64_t>(sizeof(float)));
  }
  // Each on the host of a worker (PlaceShards).
  const ShardMap map =
      DivideIntoShards(bytes, std::min({asked, workers, static_cast<int>(bytes.size())}));
  int64_t all_bytes = 0;
  for (const int64_t each : bytes) all_bytes += each;
  const double own_rate = optim_.learning_rate() / job_->optim().learning_rate();
  const auto step = [this](int64_t images) {
    return std::min(images / images_per_step_, job_->plan().total_steps() - 1);
  };
  for (size_t i = 0; i < map.parameters.size(); ++i) {
    WeightServerOptions options{
        .optim = optim_,
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
    const double share = static_cast<double>(map.bytes[i]) / static_cast<double>(all_bytes);
    RT_ASSIGN_OR_RETURN(Server server, CreateServer(options, static_cast<int>(i), share));
    servers_.push_back(std::move(server));
  }
  return OkStatus();
}

// `share`: of all weights.
StatusOr<ServerRule::Server> ServerRule::CreateServer(const WeightServerOptions& options, int host,
                                                      double share) {
  const AsynchronousConfig& config = job_->config().dist().asynchronous();
  RT_ASSIGN_OR_RETURN(auto weights, WeightServer::Create(options, *job_->arena()));
  const int64_t elements = weights->elements();
  const double decode_s = compresses_ ? share * job_->compute().decode_ms() * kSecondsPerMs : 0;
  return Server{.weights = std::move(weights),
                .queue = std::make_unique<ServerQueue>(job_, host),
                .pulls = PullEncoder(config.pull(), config.key_versions(), elements),
                .update_s = share * job_->compute().update_ms() * kSecondsPerMs,
                .decode_s = decode_s};
}

Status ServerRule::AddWorker(int worker) {
  const ParameterArena& model = *job_->arena();
  Seat& seat = seats_[worker];
  seat.weights = AlignedBuffer(model.values().size_bytes());
  seat.statistics = AlignedBuffer(model.buffer_values().size_bytes());
  std::ranges::copy(servers_[0].weights->arena()->buffer_values(),
                    seat.statistics.floats().begin());
  seat.versions.resize(servers_.size());
  seat.idle_since_ns = job_->queue()->now_ns();
  if (compresses_) {
    std::vector<std::span<const size_t>> parameters;
    for (const Server& server : servers_) parameters.push_back(server.weights->parameters());
    RT_ASSIGN_OR_RETURN(seat.compression, PushCompression::Create(job_, worker, parameters));
  }
  for (Server& server : servers_) {
    seat.pulls.emplace_back(job_->config().dist().asynchronous().pull(),
                            server.weights->elements());
    server.weights->shard()->Join(worker);
  }
  return OkStatus();
}

Status ServerRule::OnJoin(int worker) {
  if (finished_) return OkStatus();
  RT_RETURN_IF_ERROR(AddWorker(worker));
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

}  // namespace ringtail
