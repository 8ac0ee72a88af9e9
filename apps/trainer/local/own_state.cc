#include "apps/trainer/local/own_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/trainer/local/round_sums.h"

namespace ringtail {
namespace {

constexpr char kRound[] = "round";
// Of a rank with nothing to add: it counts if no other has anything either.
constexpr double kLeastShare = 1e-9;

std::string NameIn(int rank, const std::string& block) {
  return fmt::format("local.{}.{}", rank, block);
}

// Of the rank `from` in the mean of all, which divides by the sum of them.
StatusOr<double> ShareIn(const SafetensorsFile& part, int from) {
  const std::string name = NameIn(from, kRound);
  RoundSums::Saved sums{};
  if (part.Has(name)) {
    RT_ASSIGN_OR_RETURN(const std::span<const float> saved, part.F32(name, {std::ssize(sums)}));
    std::ranges::copy(saved, sums.begin());
  }
  return std::max(RoundSums::Restored(sums, /*steps=*/0).Weight(), kLeastShare);
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
  double parts = 0, shares = 0;  // read so far
  const PartReader reader{
      .needs = [&](int rank, int from, int) { return !same_world || rank == from; },
      .take = [&](const SafetensorsFile& part, int from, int) -> Status {
        if (same_world) return Take(part, from, {});
        RT_ASSIGN_OR_RETURN(const double share, ShareIn(part, from));
        shares += share;
        return Take(part, from, {.of_rank = share / shares, .of_round = 1 / ++parts});
      }};
  RT_RETURN_IF_ERROR(ReadParts(world, saved, source_rank, reader));
  return saved_world > 0;
}

Status OwnState::Take(const SafetensorsFile& part, int from, const Shares& shares) {
  for (const auto& [block, values] : blocks_) {
    const std::string name = NameIn(from, block);
    if (!part.Has(name)) continue;
    RT_ASSIGN_OR_RETURN(const std::span<const float> saved, part.F32(name, {std::ssize(values)}));
    if (!std::ranges::all_of(saved, [](float value) { return std::isfinite(value); })) {
      return DataLoss(fmt::format("'{}' has a NaN or infinity", name));
    }
    const bool first = taken_.insert(block).second;
    const double share = block == kRound ? shares.of_round : shares.of_rank;
    for (size_t i = 0; i < saved.size(); ++i) {
      const double before = first ? saved[i] : values[i];
      values[i] = static_cast<float>(before + share * (saved[i] - before));
    }
  }
  return OkStatus();
}

}  // namespace ringtail
