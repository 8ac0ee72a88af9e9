#include "dist/compression/memory/layer_memories.h"

#include <algorithm>
#include <limits>

#include "core/check.h"
#include "dist/collectives/plan.h"
#include "dist/compression/memory/error_feedback.h"

namespace ringtail {
namespace {

bool Uses(std::span<const CompressedLayer> layers, MemoryKind memory) {
  return std::ranges::any_of(layers, [&](const auto& l) { return l.scheme.memory == memory; });
}

bool RemembersSums(const CompressedLayer& layer) {
  return layer.sharded && layer.scheme.memory == MemoryKind::kErrorFeedback;
}

}  // namespace

LayerMemories::LayerMemories(const ParameterArena* arena, std::span<const CompressedLayer> layers,
                             const LayerMemoryOptions& options)
    : arena_(arena), options_(options) {
  RT_CHECK(layers.size() == arena->replicated().size(), "every parameter has a scheme");
  RT_CHECK(options.keeps_momentum || !Uses(layers, MemoryKind::kMomentum),
           "momentum is kept for all layers or for none");
  MakeBlocks(layers);
  for (size_t i = 0; i < layers.size(); ++i) memories_.push_back(MakeMemory(layers[i], i));
}

void LayerMemories::MakeBlocks(std::span<const CompressedLayer> layers) {
  const size_t bytes = arena_->grads().size_bytes();
  const bool momentum = options_.keeps_momentum;
  if (Uses(layers, MemoryKind::kErrorFeedback) || momentum || options_.carries_over) {
    residual_ = AlignedBuffer(bytes);
  }
  if (momentum) momentum_ = AlignedBuffer(bytes);
  if (momentum) dense_momentum_ = AlignedBuffer(bytes);
  if (std::ranges::any_of(layers, RemembersSums)) residual_of_sums_ = AlignedBuffer(bytes);
}

LayerMemories::Memory LayerMemories::MakeMemory(const CompressedLayer& layer, size_t i) const {
  const LayerScheme& scheme = layer.scheme;
  RT_CHECK(!layer.sharded || scheme.can_shard(), "the scheme of a sharded layer takes parts");
  Memory memory{.kind = scheme.memory};
  if (scheme.dense()) return memory;
  switch (scheme.memory) {
    case MemoryKind::kNone:
      memory.codec = std::make_unique<NoMemory>();
      memory.sum = std::make_unique<NoMemory>();
      memory.sketch = std::make_unique<NoMemory>();
      break;
    case MemoryKind::kErrorFeedback:
      memory.codec = std::make_unique<ErrorFeedback>(residual(i));
      memory.sketch = std::make_unique<ErrorFeedback>(residual(i));
      if (layer.sharded) {
        const ElementRange own =
            EvenPart(arena_->parameters()[i].elements, options_.world, options_.rank);
        memory.sum = std::make_unique<ErrorFeedback>(
            Slice(residual_of_sums_, i).subspan(own.offset, own.count));
      }
      break;
    case MemoryKind::kMomentum:
      memory.codec = std::make_unique<MomentumMemory>(options_.momentum, momentum(i), residual(i));
      break;
  }
  return memory;
}

std::span<float> LayerMemories::Slice(const AlignedBuffer& block, size_t i) const {
  if (block.size_bytes() == 0) return {};
  const Parameter& p = arena_->parameters()[i];
  return block.floats().subspan(p.offset, p.elements);
}

void LayerMemories::ApplyDenseMomentum(size_t i) {
  if (memories_[i].kind == MemoryKind::kMomentum) return;
  const std::span<float> sum = arena_->parameters()[i].grad();
  MomentumMemoryOptions options = options_.momentum;
  options.max_norm = std::numeric_limits<double>::infinity();
  // Such a layer does not use its slice of momentum_, which serves as scratch: zero before and
  // after.
  MomentumMemory memory(options, dense_momentum(i), momentum(i));
  memory.Add(sum);
  std::ranges::copy(memory.residual(), sum.begin());
  memory.SentAll();
}

std::vector<StateBlock> LayerMemories::state() const {
  std::vector<StateBlock> blocks;
  const auto add = [&](const char* name, const AlignedBuffer& block, bool own) {
    if (block.size_bytes() > 0) blocks.push_back({name, block.floats(), own});
  };
  add(StateBlock::kResidual, residual_, true);
  add(StateBlock::kResidualOfSums, residual_of_sums_, true);
  add("momentum", momentum_, true);
  add("dense_momentum", dense_momentum_, false);
  return blocks;
}

}  // namespace ringtail
