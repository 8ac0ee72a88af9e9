#include "apps/emulator/clock/exchange_items.h"

#include <numeric>
#include <string>
#include <utility>

#include "apps/emulator/clock/item_list.h"
#include "apps/trainer/update/roll_call.h"
#include "dist/collectives/allgather_choice.h"
#include "dist/compression/scheme_choice.h"

namespace ringtail {
namespace {

constexpr int64_t kSums = 3;  // doubles: loss, right answers, images

// The index of the layer that the parameter belongs to: "<layer>.weight"; the last if it is none's.
size_t LayerOf(const Parameter& parameter, std::span<const LayerInfo> layers) {
  size_t found = layers.size() - 1, longest = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string prefix = layers[i].name + ".";
    if (prefix.size() <= longest || !parameter.spec.name.starts_with(prefix)) continue;
    found = i;
    longest = prefix.size();
  }
  return found;
}

// By layer: the fraction of forward and backward after which its gradients are final.
std::vector<double> ReadyFractions(std::span<const LayerInfo> layers, double* forward) {
  double all = 0, done = 0;
  for (const LayerInfo& layer : layers) {
    done += layer.forward_flops;
    all += layer.forward_flops + layer.backward_flops;
  }
  *forward = all > 0 ? done / all : 0;
  std::vector<double> ready(layers.size());
  for (size_t i = layers.size(); i-- > 0;) {
    done += layers[i].backward_flops;
    ready[i] = all > 0 ? done / all : 0;
  }
  return ready;
}

}  // namespace

ExchangeSizes SizesOfExchange(const ParameterArena& arena, std::span<const LayerInfo> layers,
                              const DistConfig& config, std::span<const double> work) {
  ExchangeSizes sizes;
  sizes.statistics = std::ssize(arena.buffer_values());
  sizes.buckets = MakeGradientBuckets(arena.parameters(), BucketsOf(config));
  const std::vector<double> by_layer = ReadyFractions(layers, &sizes.forward);
  const double all = std::accumulate(work.begin(), work.end(), 0.0);
  size_t parameter = 0;
  for (const GradientBucket& bucket : sizes.buckets) {
    double part = 0;
    for (size_t i = 0; i < bucket.parameters && all > 0; ++i) part += work[parameter + i] / all;
    sizes.prepares.push_back(part);
    parameter += bucket.parameters;
    sizes.ready.push_back(by_layer[LayerOf(arena.parameters()[parameter - 1], layers)]);
  }
  return sizes;
}

StatusOr<std::vector<ExchangeItem>> ItemsOfExchange(
    const ExchangeSizes& sizes, std::span<const Parameter> parameters,
    const std::vector<int>& workers, const VirtualNetwork& network, const DistConfig& config,
    const CodedLayers* layers, const ExchangeTime& step) {
  RT_ASSIGN_OR_RETURN(ItemList items, ItemList::Create(workers, network, config.algorithm()));
  items.set_ready(sizes.forward);
  items.AllReduce(kSums * static_cast<int64_t>(sizeof(double)) / kElementBytes);
  if (sizes.statistics > 0 && TakesStatistics(config.compression(), step.step))
    items.AllReduce(sizes.statistics);
  AddBuckets(sizes, parameters, config.compression(), layers, step, &items);
  return items.Finish();
}

ExchangeItem RollCallItem(const std::vector<int>& workers, const VirtualNetwork& network) {
  return GatherItem(workers, sizeof(RankStep), network);
}

ExchangeItem GatherItem(const std::vector<int>& workers, int64_t bytes,
                        const VirtualNetwork& network) {
  const auto world = static_cast<int>(workers.size());
  const int64_t floats = world * bytes / kElementBytes;
  const AllgatherAlgorithm& algorithm = CheaperAllgather(
      network.TopologyOf(workers), floats, static_cast<size_t>(kElementBytes), network.model());
  Plans plans;
  for (int rank = 0; rank < world; ++rank) plans.push_back(algorithm.plan(rank, world, floats));
  return {.plans = std::make_shared<const Plans>(std::move(plans)), .ready = 1};
}

}  // namespace ringtail
