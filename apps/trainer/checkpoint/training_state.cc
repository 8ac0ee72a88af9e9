#include "apps/trainer/checkpoint/training_state.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "apps/trainer/checkpoint/model_file.h"
#include "core/storage/crc32c.h"

namespace ringtail {
namespace {

// Where a tensor of the state lives: saving reads there, restoring writes there.
struct StateTensor {
  uint32_t StateChecksums::*kind;
  std::string name;
  const ParameterSpec* spec;
  std::span<float> values;
};

std::vector<StateTensor> StateTensors(const ParameterArena& arena, Optimizer* optimizer,
                                      WeightAverage* average) {
  std::vector<StateTensor> tensors;
  const auto add = [&](uint32_t StateChecksums::*kind, const std::string& prefix,
                       const Parameter& p, std::span<float> values) {
    tensors.push_back({kind, prefix + p.spec.name, &p.spec, values});
  };
  const auto slice = [](const Parameter& p, std::span<float> block) {
    return block.subspan(p.offset, p.elements);
  };
  for (const Parameter& p : arena.parameters()) add(&StateChecksums::weights, "", p, p.value());
  for (const Parameter& p : arena.buffers()) add(&StateChecksums::statistics, "", p, p.value());
  for (const Parameter& p : arena.fixed()) {
    add(p.is_buffer ? &StateChecksums::statistics : &StateChecksums::weights, "", p, p.value());
  }
  for (const Optimizer::StateBlock& block : optimizer->state()) {
    const std::string prefix = fmt::format("optimizer.{}.", block.name);
    for (const Parameter& p : arena.parameters()) {
      add(&StateChecksums::optimizer, prefix, p, slice(p, block.values));
    }
  }
  if (average == nullptr) return tensors;
  for (const Parameter& p : arena.parameters()) {
    add(&StateChecksums::average, kAveragePrefix, p, slice(p, average->values()));
  }
  for (const Parameter& p : arena.buffers()) {
    add(&StateChecksums::average, kAveragePrefix, p, slice(p, average->buffers()));
  }
  return tensors;
}

}  // namespace

StatusOr<TrainingState> TrainingState::Create(std::unique_ptr<Model> model,
                                              const OptimConfig& config, uint64_t seed,
                                              const Start& start,
                                              const OptimizerOptions& optimizer) {
  TrainingState state;
  state.model_ = std::move(model);
  state.model_->Initialize(seed);
  if (start) RT_RETURN_IF_ERROR(start(state.model_.get()));
  ParameterArena* arena = &state.model_->arena();
  RT_ASSIGN_OR_RETURN(state.optimizer_, Optimizer::Create(config, arena, optimizer));
  if (config.ema_decay() > 0) {
    state.average_ = std::make_unique<WeightAverage>(config.ema_decay(), arena);
  }
  return state;
}

std::vector<TensorView> TrainingState::Tensors() const {
  std::vector<TensorView> views;
  for (const StateTensor& t : StateTensors(model_->arena(), optimizer_.get(), average_.get())) {
    views.push_back(ViewF32(t.name, t.spec->shape, t.values));
  }
  return views;
}

std::vector<std::span<float>> TrainingState::Blocks() const {
  const ParameterArena& arena = model_->arena();
  const auto replicated = [&](std::span<float> block) {
    return block.first(arena.replicated_floats());
  };
  std::vector<std::span<float>> blocks = {replicated(arena.values()), arena.buffer_values(),
                                          arena.fixed_values()};
  for (const Optimizer::StateBlock& block : optimizer_->state()) {
    blocks.push_back(replicated(block.values));
  }
  if (average_ != nullptr) {
    blocks.push_back(replicated(average_->values()));
    blocks.push_back(average_->buffers());
  }
  return blocks;
}

std::vector<StateSlot> TrainingState::Slots() const {
  std::vector<StateSlot> slots;
  for (const StateTensor& t : StateTensors(model_->arena(), optimizer_.get(), average_.get())) {
    slots.push_back({t.name, t.spec, t.values});
  }
  return slots;
}

std::vector<ShardedTensor> TrainingState::Sharded() const {
  std::vector<ShardedTensor> sharded;
  for (const StateTensor& t : StateTensors(model_->arena(), optimizer_.get(), average_.get())) {
    if (t.spec->is_sharded()) sharded.push_back({t.name, t.spec, t.values});
  }
  return sharded;
}

Status TrainingState::Restore(const SafetensorsFile& file) {
  for (const StateTensor& t : StateTensors(model_->arena(), optimizer_.get(), average_.get())) {
    RT_ASSIGN_OR_RETURN(std::span<const float> saved, file.F32(t.name, t.spec->WholeShape()));
    saved = OwnRows(*t.spec, saved);
    if (!std::all_of(saved.begin(), saved.end(), [](float v) { return std::isfinite(v); })) {
      return DataLoss(fmt::format("'{}' has a NaN or infinity", t.name));
    }
    std::copy(saved.begin(), saved.end(), t.values.begin());
  }
  return OkStatus();
}

void TrainingState::Adopt(const TrainingState& other, int64_t thaw_step) {
  std::map<std::string, std::span<const float>> known;
  for (const StateTensor& t :
       StateTensors(other.model_->arena(), other.optimizer_.get(), other.average_.get())) {
    known.emplace(t.name, t.values);
  }
  constexpr std::string_view kAverage = kAveragePrefix;
  for (const StateTensor& t : StateTensors(model_->arena(), optimizer_.get(), average_.get())) {
    auto found = known.find(t.name);
    if (found == known.end() && t.name.starts_with(kAverage)) {
      found = known.find(t.name.substr(kAverage.size()));
    }
    if (found == known.end()) {
      std::fill(t.values.begin(), t.values.end(), 0.0F);
    } else {
      std::copy(found->second.begin(), found->second.end(), t.values.begin());
    }
  }
  std::vector<int64_t> first_steps;
  for (const Parameter& p : model_->arena().parameters()) {
    const bool trained = other.model_->arena().FindParameter(p.spec.name) != nullptr;
    first_steps.push_back(trained ? 0 : thaw_step);
  }
  optimizer_->set_first_steps(std::move(first_steps));
  progress = other.progress;
}

StateChecksums TrainingState::Checksums() const {
  static_assert(sizeof(TrainingProgress) == 6 * sizeof(int64_t) + 2 * sizeof(double));  // no gaps
  StateChecksums sums;
  for (const StateTensor& t : StateTensors(model_->arena(), optimizer_.get(), average_.get())) {
    if (!t.spec->is_sharded()) sums.*t.kind = Crc32c(std::as_bytes(t.values), sums.*t.kind);
  }
  sums.progress = Crc32c(std::as_bytes(std::span(&progress, 1)));
  return sums;
}

Status TrainingState::CheckFinite() const { return ringtail::CheckFinite(Tensors()); }

}  // namespace ringtail
