#include "apps/emulator/rules/worker_compression.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "dist/transport/in_process.h"

namespace ringtail {
namespace {

// `own`: also what differs by rank.
void CopyState(const CompressedReducer& from, bool own, CompressedReducer* to) {
  for (const StateBlock& block : to->state()) {
    if (block.name == StateBlock::kResidualOfSums || (block.own && !own)) continue;
    for (const StateBlock& saved : from.state()) {
      if (saved.name == block.name) std::ranges::copy(saved.values, block.values.begin());
    }
  }
}

}  // namespace

CodedLayers WorkerCompression::LayersOf(const std::vector<int>& workers) const {
  const std::span<const Parameter> parameters = job_->arena()->parameters();
  if (workers.size() == 1) return DenseLayers(parameters.size());
  const VirtualNetwork& network = *job_->network();
  return ChooseCodedLayers(kind_, parameters, job_->compute(), network.TopologyOf(workers),
                           network.model());
}

// Keeps the ranks if they are those of the last time.
Status WorkerCompression::Seat(std::span<const Member> members) {
  const auto same = [](const Member& member, const Rank& rank) {
    return member.worker == rank.worker;
  };
  if (std::ranges::equal(members, ranks_, same)) return OkStatus();
  std::vector<int> workers;
  for (const Member& member : members) workers.push_back(member.worker);
  const auto world = static_cast<int>(workers.size());
  const DistConfig& dist = job_->config().dist();
  std::vector<std::unique_ptr<Transport>> transports = MakeInProcessWorld(world);
  std::vector<Rank> ranks;
  for (int r = 0; r < world; ++r) {
    const auto i = static_cast<size_t>(r);
    Rank& rank = ranks.emplace_back(Rank{.worker = workers[i]});
    rank.transport = std::move(transports[i]);
    RT_ASSIGN_OR_RETURN(
        rank.communicator,
        Communicator::Create(rank.transport.get(), job_->network()->TopologyOf(workers),
                             {.algorithm = dist.algorithm(), .network = job_->network()->model()}));
    CompressedReducer::Options options = ReducerOptions(kind_.config, r, world, kind_.samples);
    options.seed = job_->config().train().seed();
    rank.carries_over = options.memory.carries_over = !ranks_.empty();
    rank.reducer = std::make_unique<CompressedReducer>(members[i].arena, job_->sizes().buckets,
                                                       LayersOf(workers).Take(), options);
    const auto before = std::ranges::find(ranks_, rank.worker, &Rank::worker);
    if (ranks_.empty()) continue;
    const bool stays = before != ranks_.end();
    CopyState(*(stays ? *before : ranks_.front()).reducer, stays, rank.reducer.get());
  }
  ranks_ = std::move(ranks);
  return OkStatus();
}

Status WorkerCompression::ReduceOwn(const ExchangeTime& time, Rank* rank,
                                    ParameterArena* arena) const {
  if (std::exchange(rank->carries_over, false)) {
    RT_RETURN_IF_ERROR(rank->reducer->StartCarryOver(rank->communicator.get()));
  }
  rank->reducer->BeginStep(time.step, time.epoch);
  const std::span<float> gradients = arena->grads();
  const std::vector<GradientBucket>& buckets = job_->sizes().buckets;
  for (size_t b = 0; b < buckets.size(); ++b) {
    const ElementRange& range = buckets[b].range;
    RT_RETURN_IF_ERROR(rank->reducer->Reduce(
        rank->communicator.get(), b,
        gradients.subspan(static_cast<size_t>(range.offset), static_cast<size_t>(range.count))));
  }
  rank->reducer->EndStep();
  return OkStatus();
}

Status WorkerCompression::Reduce(const ExchangeTime& time, std::span<const Member> members) {
  RT_RETURN_IF_ERROR(Seat(members));
  std::vector<Status> results(members.size(), OkStatus());
  int64_t sent = 0;
  for (const Rank& rank : ranks_) sent -= rank.communicator->sent_bytes();
  {
    std::vector<std::jthread> threads;
    threads.reserve(members.size());
    for (size_t i = 0; i < members.size(); ++i) {
      threads.emplace_back([this, &time, &members, &results, i] {
        results[i] = ReduceOwn(time, &ranks_[i], members[i].arena);
        if (!results[i].ok()) ranks_[i].communicator->Abort(results[i]);
      });
    }
  }
  for (const Rank& rank : ranks_) sent += rank.communicator->sent_bytes();
  sent_bytes_ = sent;
  for (const Status& result : results) RT_RETURN_IF_ERROR(result);
  for (const Rank& rank : ranks_) rank.reducer->TakeReadings();
  return OkStatus();
}

}  // namespace ringtail
