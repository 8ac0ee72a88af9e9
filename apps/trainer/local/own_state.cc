#include "apps/trainer/local/own_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ringtail {
namespace {

std::string NameIn(int rank, const std::string& block) {
  return fmt::format("local.{}.{}", rank, block);
}

}  // namespace

std::vector<TensorView> OwnState::Tensors(int rank) const {
  std::vector<TensorView> tensors;
  tensors.reserve(blocks_.size());
  for (const auto& [name, block] : blocks_) {
    tensors.push_back(ViewF32(NameIn(rank, name), {std::ssize(block)}, block));
  }
  return tensors;
}

void OwnState::Keep() {
  kept_.resize(blocks_.size());
  for (size_t i = 0; i < blocks_.size(); ++i) {
    kept_[i].assign(blocks_[i].second.begin(), blocks_[i].second.end());
  }
}

void OwnState::TakeBack() {
  for (size_t i = 0; i < kept_.size(); ++i) std::ranges::copy(kept_[i], blocks_[i].second.begin());
}

StatusOr<bool> OwnState::Restore(TrainingWorld* world, const SavedParts& saved, int source_rank) {
  RT_ASSIGN_OR_RETURN(const std::vector<int64_t> written,
                      world->ShareNumbers({std::ssize(saved.parts.ranks)}, source_rank));
  const int64_t saved_world = written[0];
  const bool same_world = saved_world == world->size();
  const PartReader reader{
      .needs = [&](int rank, int from, int) { return !same_world || rank == from; },
      .take =
          [&](const SafetensorsFile& part, int from, int) {
            return Take(part, from, same_world ? 1 : 1 / static_cast<double>(saved_world));
          }};
  RT_RETURN_IF_ERROR(ReadParts(world, saved, source_rank, reader));
  return saved_world > 0;
}

Status OwnState::Take(const SafetensorsFile& part, int from, double share) {
  for (const auto& [block, values] : blocks_) {
    const std::string name = NameIn(from, block);
    if (!part.Has(name)) continue;
    RT_ASSIGN_OR_RETURN(const std::span<const float> saved, part.F32(name, {std::ssize(values)}));
    if (!std::ranges::all_of(saved, [](float value) { return std::isfinite(value); })) {
      return DataLoss(fmt::format("'{}' has a NaN or infinity", name));
    }
    const bool first = taken_.insert(block).second;
    for (size_t i = 0; i < saved.size(); ++i) {
      const auto addend = static_cast<float>(share * saved[i]);
      values[i] = first ? addend : values[i] + addend;
    }
  }
  return OkStatus();
}

}  // namespace ringtail
