#include "apps/trainer/sharding/shard_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/units.h"
#include "dist/planner/divided_layers.h"
#include "layers/net.pb.h"
#include "layers/net/graph.h"
#include "optim/optimizer.h"

namespace ringtail {
namespace {

struct LinearLayerSize : LinearSize {
  std::string name;
};

// The linear layers of the net that are not frozen.
std::vector<LinearLayerSize> LinearLayers(const Model& model) {
  std::vector<LinearLayerSize> layers;
  for (int i = 0; i < model.graph().size(); ++i) {
    const Node& node = model.graph().nodes()[i];
    if (!node.config->has_linear() || model.IsFrozen(i)) continue;
    const Shape& weight = model.parameters(i)[0]->spec.shape;
    layers.push_back({{.outputs = weight[0], .inputs = weight[1]}, node.name});
  }
  return layers;
}

bool Divides(const ModelParallelConfig& config, const LinearLayerSize& layer, int64_t images,
             int ranks) {
  switch (config.linear()) {
    case ModelParallelConfig::WHOLE:
      return false;
    case ModelParallelConfig::AUTO:
      return IsWorthDividing(layer, images, ranks);
    case ModelParallelConfig::ALL:
      return layer.outputs >= ranks;
    case ModelParallelConfig::NAMED:
      return std::ranges::find(config.layer(), layer.name) != config.layer().end();
  }
  return false;
}

// Rules that look at a matrix as a whole would see a slice.
Status CheckOptimizer(const LoadedConfig& loaded) {
  const OptimConfig& optim = loaded.config.optim();
  if (Optimizer::UpdatesElementwise(optim)) return OkStatus();
  const auto* rule =
      OptimConfig::descriptor()->FindFieldByNumber(static_cast<int>(optim.rule_case()));
  return loaded.source.Error(
      "dist.model_parallel.linear",
      fmt::format("optim.{} works on whole matrices, of which each rank would hold some rows; take "
                  "sgd, adam or adamw, or leave out dist.model_parallel",
                  rule->name()));
}

Status CheckNames(const LoadedConfig& loaded, const std::vector<LinearLayerSize>& layers) {
  std::vector<std::string> names(layers.size());
  std::ranges::transform(layers, names.begin(), &LinearLayerSize::name);
  for (const std::string& name : loaded.config.dist().model_parallel().layer()) {
    if (std::ranges::find(names, name) != names.end()) continue;
    return loaded.source.Error("dist.model_parallel.layer",
                               fmt::format("'{}' is no linear layer that trains; those are: {}",
                                           name, fmt::join(names, ", ")));
  }
  return OkStatus();
}

}  // namespace

std::string ShardChoice::Describe() const {
  if (!divides()) return {};
  return fmt::format(
      "{} {} divided among {} ranks: {:.1f} MB from each and step in place of {:.1f}",
      fmt::join(request.layers, ", "), request.layers.size() == 1 ? "is" : "are",
      request.shard.ranks, static_cast<double>(divided_bytes) / kMega,
      static_cast<double>(gradient_bytes) / kMega);
}

StatusOr<ShardChoice> ChooseShards(const LoadedConfig& loaded, int rank, int ranks) {
  const ModelParallelConfig& config = loaded.config.dist().model_parallel();
  ShardChoice choice;
  if (ranks == 1 || config.linear() == ModelParallelConfig::WHOLE) return choice;
  RT_ASSIGN_OR_RETURN(const auto model, CreateModel(loaded, /*allocate=*/false));
  const std::vector<LinearLayerSize> layers = LinearLayers(*model);
  RT_RETURN_IF_ERROR(CheckNames(loaded, layers));
  choice.request.shard = {.rank = rank, .ranks = ranks, .pieces = config.pieces()};
  const int64_t images = loaded.config.train().batch();
  for (const LinearLayerSize& layer : layers) {
    if (!Divides(config, layer, images, ranks)) continue;
    choice.request.layers.push_back(layer.name);
    choice.divided_bytes += DividedBytes(layer, images, ranks);
    choice.gradient_bytes += GradientBytes(layer, ranks);
  }
  if (choice.divides()) RT_RETURN_IF_ERROR(CheckOptimizer(loaded));
  return choice;
}

}  // namespace ringtail
