#include "apps/parameter_server/weight_server.h"

#include <algorithm>
#include <utility>

#include "apps/parameter_server/server_optimizer.h"
#include "core/check.h"
#include "core/parameter_specs.h"
#include "optim/gradient_norm.h"

namespace ringtail {
namespace {

std::vector<ParameterSpec> SpecsOf(std::span<const Parameter> parameters,
                                   const std::vector<size_t>& chosen) {
  std::vector<ParameterSpec> specs;
  specs.reserve(chosen.size());
  for (const size_t i : chosen) specs.push_back(parameters[i].spec);
  return specs;
}

}  // namespace

StatusOr<std::unique_ptr<WeightServer>> WeightServer::Create(const WeightServerOptions& options,
                                                             const ParameterArena& model) {
  RT_ASSIGN_OR_RETURN(
      std::unique_ptr<ParameterArena> arena,
      ParameterArena::Create(
          SpecsOf(model.parameters(), options.parameters),
          options.has_statistics ? SpecsOf(model.buffers()) : std::vector<ParameterSpec>()));
  RT_ASSIGN_OR_RETURN(
      std::unique_ptr<Optimizer> optimizer,
      Optimizer::Create(options.optim, arena.get(), {.bf16_products = options.bf16_products}));
  std::unique_ptr<WeightServer> server(
      new WeightServer(options, ShardLayout(model.parameters(), options.parameters),
                       std::move(arena), std::move(optimizer)));
  server->Gather(model.values(), server->arena_->values());
  if (options.has_statistics) {
    std::ranges::copy(model.buffer_values(), server->arena_->buffer_values().begin());
  }
  if (options.optim.ema_decay() > 0) {
    server->average_.emplace(options.optim.ema_decay(), server->arena_.get());
  }
  return server;
}

WeightServer::WeightServer(const WeightServerOptions& options, ShardLayout layout,
                           std::unique_ptr<ParameterArena> arena,
                           std::unique_ptr<Optimizer> optimizer)
    : options_(options),
      layout_(std::move(layout)),
      arena_(std::move(arena)),
      optimizer_(std::move(optimizer)) {
  RT_CHECK(layout_.elements() == elements(), "a shard lies as its arena does");
  shard_.emplace(options.shard, arena_->values(), arena_->grads(),
                 [this](const ShardUpdate& update) { return Apply(update); });
}

double WeightServer::Apply(const ShardUpdate& update) {
  const int64_t step = options_.step(update.images_before);
  const double usual = StepsHaveTheirOwnLength(options_.optim) ? update.usual_weight : 1;
  const double scale = update.scale() / usual;
  const double norm = options_.alone ? GradientNorm(*arena_, scale) : update.mean_norm / usual;
  rate_ = options_.rate(update.images_before) * usual;
  optimizer_->Step(update.version, rate_, scale * ClipFactor(norm, options_.optim.clip_norm()));
  if (average_) average_->Update(step);
  return rate_;
}

}  // namespace ringtail
