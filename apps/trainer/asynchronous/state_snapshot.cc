#include "apps/trainer/asynchronous/state_snapshot.h"

#include <algorithm>

#include "core/check.h"
#include "optim/weight_average.h"

namespace ringtail {

size_t SnapshotBytes(const PlacedShard& shard, bool first, size_t blocks,
                     const TrainingState& state, const RuleState& rule) {
  const size_t averages = state.average() != nullptr ? 1 : 0;
  const auto elements = static_cast<size_t>(shard.layout.elements());
  const size_t statistics = first ? state.model()->arena().buffer_values().size() : 0;
  const size_t learnt = rule.block.empty() ? 0 : 1;
  return (elements * (1 + blocks + averages + learnt) + kScalarFloats +
          statistics * (1 + averages)) *
         sizeof(float);
}

RuleScalars PutSnapshot(const PlacedShard& shard, bool first,
                        const std::vector<std::string>& blocks, std::span<const float> sent,
                        TrainingState* state, RuleState* rule) {
  const auto take = [&sent](size_t count) {
    const std::span<const float> block = sent.first(count);
    sent = sent.subspan(count);
    return block;
  };
  const auto elements = static_cast<size_t>(shard.layout.elements());
  const ParameterArena& model = state->model()->arena();
  WeightAverage* const average = state->average();
  shard.layout.Scatter(take(elements), model.values());
  for (const std::string& name : blocks) {
    const std::span<const float> block = take(elements);
    for (const Optimizer::StateBlock& whole : state->optimizer()->state()) {
      if (whole.name == name) shard.layout.Scatter(block, whole.values);
    }
  }
  if (average != nullptr) shard.layout.Scatter(take(elements), average->values());
  if (!rule->block.empty()) shard.layout.Scatter(take(elements), rule->block);
  const RuleScalars scalars = DecodeScalars(take(kScalarFloats));
  if (!first) return scalars;
  const std::span<float> statistics = model.buffer_values();
  std::ranges::copy(take(statistics.size()), statistics.begin());
  if (average == nullptr) return scalars;
  std::ranges::copy(take(statistics.size()), average->buffers().begin());
  return scalars;
}

void ForgetOtherBlocks(const std::vector<Optimizer::StateBlock>& served, Optimizer* run) {
  for (const Optimizer::StateBlock& block : run->state()) {
    if (std::ranges::find(served, block.name, &Optimizer::StateBlock::name) == served.end()) {
      std::ranges::fill(block.values, 0.0F);
    }
  }
}

}  // namespace ringtail
