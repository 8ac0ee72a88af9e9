#include "apps/trainer/asynchronous/served_shard.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "apps/parameter_server/server_optimizer.h"
#include "apps/trainer/asynchronous/state_snapshot.h"
#include "apps/trainer/asynchronous/worker_division.h"
#include "core/logging.h"
#include "core/parallel_for.h"
#include "dist/parameter_server/rule_choice.h"
#include "optim/batch_growth.h"

namespace ringtail {
namespace {

// Heartbeats name a worker that is gone long before; one that computes may take that long.
constexpr std::chrono::minutes kLeaveTimeout{10};

// Blocks of the same name.
template <typename Visit>
void ForEachBlock(Optimizer* model, Optimizer* own, const Visit& visit) {
  for (const Optimizer::StateBlock& whole : model->state()) {
    for (const Optimizer::StateBlock& part : own->state()) {
      if (part.name == whole.name) visit(whole.values, part.values);
    }
  }
}

}  // namespace

StatusOr<std::unique_ptr<ServedShard>> ServedShard::Create(const Generation* generation,
                                                           const std::vector<PlacedShard>& placed,
                                                           size_t index, const ServerProgress& from,
                                                           const RuleState& learnt) {
  std::unique_ptr<ServedShard> shard(new ServedShard(generation, placed[index], index));
  const AsynchronousRule rule = RuleOf(generation->config().dist().asynchronous());
  const bool first = index == 0;
  RT_RETURN_IF_ERROR(shard->CreateWeights(placed.size(), first, from));
  const size_t block = learnt.block.empty() ? 0 : static_cast<size_t>(shard->weights_->elements());
  shard->memory_.resize(block + kScalarFloats);
  if (first) {
    const TrainingPlan& plan = generation->plan;
    const int64_t images_per_step = plan.growth_run().images_per_batch;
    RT_ASSIGN_OR_RETURN(
        Tickets tickets,
        Tickets::Restore(plan.batches_per_epoch() * images_per_step,
                         plan.total_steps() * images_per_step, from.next, from.unused));
    shard->desk_.emplace(std::move(tickets), rule.synchronous());
    shard->statistics_.emplace(shard->weights_->arena()->buffer_values());
  }
  const AsynchronousConfig& config = generation->config().dist().asynchronous();
  if (config.pull() != AsynchronousConfig::F32) {
    shard->pulls_.emplace(config.pull(), config.key_versions(), shard->weights_->elements());
  }
  shard->service_.emplace(
      ShardService::Options{.shard = shard->weights_->shard(),
                            .desk = first ? &*shard->desk_ : nullptr,
                            .statistics = first ? &*shard->statistics_ : nullptr,
                            .shares_statistics = rule.synchronous(),
                            .state = shard->State(),
                            .before_snapshot = [own = shard.get()] { own->SaveMemory(); },
                            .coding = placed[index].coding.get(),
                            .pulls = shard->pulls_ ? &*shard->pulls_ : nullptr});
  const std::vector<int64_t>& batches = generation->division.all.batches;
  for (size_t rank = 0; rank < batches.size(); ++rank) {
    shard->service_->Join(static_cast<int>(rank), batches[rank] * rule.grouping.gradients_per_push);
  }
  shard->ImportMemory(learnt);
  return shard;
}

Status ServedShard::CreateWeights(size_t servers, bool first, const ServerProgress& from) {
  const AsynchronousConfig& config = generation_->config().dist().asynchronous();
  const AsynchronousRule rule = RuleOf(config);
  const TrainingPlan& plan = generation_->plan;
  const OptimConfig& optim = generation_->optim.config;
  const int64_t images_per_step = plan.growth_run().images_per_batch;
  const OptimConfig own =
      ServerOptimizer(optim, config, rule, WorkersOf(generation_->division.all));
  const double own_rate = own.learning_rate() / optim.learning_rate();
  const auto step = [&plan, images_per_step](int64_t images) {
    return std::min(images / images_per_step, plan.total_steps() - 1);
  };
  const auto rate = [&plan, &optim, step, own_rate](int64_t images) {
    const int64_t at = step(images);
    return own_rate *
           GrownRate(optim, plan.growth_run(), plan.BatchesBefore(at), plan.BatchesOf(at));
  };
  const auto format =
      config.versions_in_bf16() ? VersionRing::Format::kBf16 : VersionRing::Format::kFloat;
  RT_ASSIGN_OR_RETURN(weights_,
                      WeightServer::Create(
                          {.optim = own,
                           .shard = {.rule = rule,
                                     .images_per_epoch = plan.batches_per_epoch() * images_per_step,
                                     .versions = config.versions(),
                                     .format = format,
                                     .first_version = from.version,
                                     .first_images = from.images},
                           .parameters = placed_.parameters,
                           .alone = servers == 1,
                           .has_statistics = first,
                           .rate = rate,
                           .step = step,
                           .bf16_products = generation_->run->options.bf16_products},
                          generation_->arena()));
  ImportState();
  return OkStatus();
}

void ServedShard::ImportState() {
  TrainingState& state = generation_->state();
  ForEachBlock(
      state.optimizer(), weights_->optimizer(),
      [&](std::span<float> whole, std::span<float> part) { weights_->Gather(whole, part); });
  ForgetOtherBlocks(weights_->optimizer()->state(), state.optimizer());
  if (state.average() == nullptr) return;
  weights_->Gather(state.average()->values(), weights_->average()->values());
  const std::span<float> statistics = weights_->average()->buffers();  // of the first server
  std::copy_n(state.average()->buffers().begin(), statistics.size(), statistics.begin());
}

void ServedShard::ImportMemory(const RuleState& learnt) {
  std::vector<float> block(memory_.size() - kScalarFloats);
  if (!block.empty()) weights_->Gather(learnt.block, block);
  weights_->shard()->RestoreMemory(block, learnt.scalars);
}

void ServedShard::SaveMemory() {
  const std::span<float> memory = memory_;
  const size_t block = memory.size() - kScalarFloats;
  EncodeScalars(weights_->shard()->SaveMemory(memory.first(block)), memory.subspan(block));
}

// In the order of StateSnapshot.
std::vector<std::span<const float>> ServedShard::State() {
  std::vector<std::span<const float>> state = {weights_->arena()->values()};
  for (const Optimizer::StateBlock& block : weights_->optimizer()->state()) {
    state.push_back(block.values);
  }
  WeightAverage* const average = weights_->average();
  if (average != nullptr) state.push_back(average->values());
  state.emplace_back(memory_);
  if (!statistics_) return state;
  state.push_back(statistics_->mean());
  if (average != nullptr) state.push_back(average->buffers());
  return state;
}

std::vector<std::string> ServedShard::block_names() {
  std::vector<std::string> names;
  for (const Optimizer::StateBlock& block : weights_->optimizer()->state()) {
    names.push_back(block.name);
  }
  return names;
}

ServerThread::Options ServedShard::ThreadOptions(std::function<void(ServerReply)> own) const {
  TrainingWorld* const world = generation_->world;
  std::vector<int> workers(static_cast<size_t>(world->size()));
  std::iota(workers.begin(), workers.end(), 0);
  return {.workers = std::move(workers),
          .requests = placed_.requests,
          .replies = placed_.replies,
          .compute_threads = NumComputeThreads(),
          .leave_timeout = kLeaveTimeout,
          .own = std::move(own)};
}

void ServedShard::Start(std::function<void(ServerReply)> own) {
  TrainingWorld* const world = generation_->world;
  ServerThread::Options options = ThreadOptions(std::move(own));
  options.lost = [world](int rank, const Status& cause) {
    if (!world->leads() || !world->transport()->EndCause().ok()) return;
    LogWarning(fmt::format("{} is lost; its images come again: {}", world->Describe(rank),
                           cause.message()));
  };
  if (const auto& replica = placed_.replica) {
    options.feed = {.rank = replica->rank,
                    .forwards = replica->forwards,
                    .acknowledgements = replica->acknowledgements};
    options.replica_lost = [world, rank = replica->rank](const Status& cause) {
      if (!world->transport()->EndCause().ok()) return;
      LogWarning(
          fmt::format("{} is lost, which had the copy of this rank's weights; there is none "
                      "any more: {}",
                      world->Describe(rank), cause.message()));
    };
  }
  thread_ = std::make_unique<ServerThread>(world->transport(), &*service_, std::move(options));
}

void ServedShard::StartReplica(std::function<void(ServerReply)> own) {
  TrainingWorld* const world = generation_->world;
  ServerThread::Options options = ThreadOptions(std::move(own));
  const PlacedShard::Replica& replica = *placed_.replica;
  options.requests = replica.requests;
  options.replies = replica.replies;
  options.follows = {.rank = placed_.rank,
                     .forwards = replica.forwards,
                     .acknowledgements = replica.acknowledgements};
  options.took_over = [world, rank = placed_.rank](const Status& cause) {
    LogWarning(
        fmt::format("{} is lost; this rank serves its weights from its copy, with every "
                    "update that a worker has heard of: {}",
                    world->Describe(rank), cause.message()));
  };
  thread_ = std::make_unique<ServerThread>(world->transport(), &*service_, std::move(options));
}

void ServedShard::Open(int64_t end) {
  thread_->Run([end](ShardService* service) { return service->Open(end); });
}

void ServedShard::Close(const ServerMessage& last) {
  thread_->Run([&last](ShardService* service) { return service->Close(last); });
}

// While no request is served.
template <typename Read>
auto ServedShard::Look(const Read& read) {
  std::optional<decltype(read(&*service_))> result;
  thread_->Run([&](ShardService* service) {
    result = read(service);
    return std::vector<ServerReply>();
  });
  return *std::move(result);
}

ServerProgress ServedShard::progress() {
  return Look([this](ShardService*) {
    const ServerShard& shard = *weights_->shard();
    return ServerProgress{.version = shard.version(),
                          .images = shard.images(),
                          .next = desk_->tickets().next(),
                          .unused = desk_->tickets().Unused()};
  });
}

std::vector<int64_t> ServedShard::Pushes() {
  const int workers = generation_->world->size();
  return Look([workers](ShardService* service) { return service->Pushes(workers); });
}

UpdateCounts ServedShard::TakeCounts() {
  return Look([](ShardService* service) { return service->TakeCounts(); });
}

bool ServedShard::HasWorkers() {
  return Look([this](ShardService*) { return desk_->Computes(); });
}

double ServedShard::rate() {
  return Look([this](ShardService*) { return weights_->rate(); });
}

}  // namespace ringtail
