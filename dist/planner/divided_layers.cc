#include "dist/planner/divided_layers.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "core/round.h"

namespace ringtail {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);
constexpr std::string_view kWeight = "weight", kBias = "bias";

// Forward and backward each gather or scatter inputs, and exchange outputs.
void AddExchange(const LinearSize& layer, int64_t images, int ranks, CollectivePrices* prices,
                 DividedLayers* divided) {
  const CollectivePrice& inputs = prices->Allgather(ranks * images * layer.inputs);
  const CollectivePrice& outputs = prices->AllToAll(images * CeilDivide(layer.outputs, ranks));
  divided->forward_seconds += inputs.seconds + outputs.seconds;
  divided->backward_seconds += inputs.seconds + outputs.seconds;
  divided->sent_bytes += 2 * static_cast<double>(inputs.sent_bytes + outputs.sent_bytes);
}

}  // namespace

int64_t DividedBytes(const LinearSize& layer, int64_t images, int ranks) {
  return 2 * (ranks - 1) * images * (ranks * layer.inputs + layer.outputs) / ranks * kFloatBytes;
}

int64_t GradientBytes(const LinearSize& layer, int ranks) {
  return 2 * (ranks - 1) * layer.outputs * (layer.inputs + 1) / ranks * kFloatBytes;
}

bool IsWorthDividing(const LinearSize& layer, int64_t images, int ranks) {
  return ranks > 1 && layer.outputs >= ranks &&
         DividedBytes(layer, images, ranks) < GradientBytes(layer, ranks);
}

DividedLayers DivideLayers(std::span<const Parameter> parameters, int64_t images, int ranks,
                           CollectivePrices* prices) {
  DividedLayers divided;
  std::set<std::string> names;
  for (const Parameter& p : parameters) {
    if (p.spec.kind != ParameterKind::kLinearWeight || !p.spec.name.ends_with(kWeight)) continue;
    const LinearSize layer{.outputs = p.spec.shape[0], .inputs = p.elements / p.spec.shape[0]};
    if (!IsWorthDividing(layer, images, ranks)) continue;
    AddExchange(layer, images, ranks, prices, &divided);
    names.insert(p.spec.name);
    names.insert(p.spec.name.substr(0, p.spec.name.size() - kWeight.size()) + std::string(kBias));
  }
  double elements = 0, taken = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    const bool is_divided = names.contains(p.spec.name);
    elements += static_cast<double>(p.elements);
    if (is_divided) taken += static_cast<double>(p.elements);
    if (!is_divided) divided.kept.push_back(i);
  }
  divided.share = elements > 0 ? taken / elements : 0;
  return divided;
}

}  // namespace ringtail
