#include "dist/compression/compression_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace ringtail {
namespace {

constexpr std::string_view kPrefix = "compression.";
const std::string kResidual = StateBlock::kResidual;
const std::string kResidualOfSums = StateBlock::kResidualOfSums;

std::string SharedName(const std::string& block) { return fmt::format("{}{}", kPrefix, block); }

std::string OwnName(const std::string& block, int rank) {
  return fmt::format("{}{}.{}", kPrefix, block, rank);
}

// The rank in the name of one rank's block; -1 if the name is another one.
int RankIn(std::string_view name, const std::string& block) {
  const std::string prefix = SharedName(block) + ".";
  if (!name.starts_with(prefix)) return -1;
  const std::string_view number = name.substr(prefix.size());
  int rank = -1;
  const auto [end, error] = std::from_chars(number.begin(), number.end(), rank);
  return error == std::errc() && end == number.end() ? rank : -1;
}

TensorView View(std::string name, std::span<const float> values) {
  return ViewF32(std::move(name), {static_cast<int64_t>(values.size())}, values);
}

bool AllFinite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}

Status DoesNotFit(const std::string& name, size_t has, size_t wanted) {
  return FailedPrecondition(
      fmt::format("'{}' has {} numbers, where this network has {}", name, has, wanted));
}

}  // namespace

std::vector<TensorView> CompressionState::Shared(std::span<const StateBlock> blocks) {
  std::vector<TensorView> tensors;
  for (const StateBlock& block : blocks) {
    if (!block.own) tensors.push_back(View(SharedName(block.name), block.values));
  }
  return tensors;
}

std::vector<TensorView> CompressionState::Own(std::span<const StateBlock> blocks, int rank) {
  std::vector<TensorView> tensors;
  for (const StateBlock& block : blocks) {
    if (block.own) tensors.push_back(View(OwnName(block.name, rank), block.values));
  }
  return tensors;
}

StatusOr<CompressionState> CompressionState::Read(const SafetensorsFile& file) {
  CompressionState state;
  for (const auto& [name, entry] : file.entries()) {
    if (!name.starts_with(kPrefix)) continue;
    RT_ASSIGN_OR_RETURN(const std::span<const float> values, file.F32(name, entry.shape));
    if (!AllFinite(values)) {
      return DataLoss(fmt::format("'{}' has a NaN or infinity", name));
    }
    state.blocks_.push_back(
        {.name = name, .shape = entry.shape, .values = {values.begin(), values.end()}});
  }
  return state;
}

bool CompressionState::HasOwn() const {
  return std::ranges::any_of(
      blocks_, [](const Block& block) { return block.name.rfind('.') >= kPrefix.size(); });
}

int CompressionState::SavedWorld() const {
  return static_cast<int>(std::ranges::count_if(
      blocks_, [](const Block& block) { return RankIn(block.name, kResidual) >= 0; }));
}

Status CompressionState::Collect(const std::string& name, int rank, int world,
                                 std::span<float> values) const {
  std::ranges::fill(values, 0.0F);
  const bool same_world = SavedWorld() == world;
  for (const Block& block : blocks_) {
    const int from = RankIn(block.name, name);
    bool belongs = from >= 0 && from % world == rank;
    if (!same_world && name == kResidualOfSums) belongs = false;
    // The owners of the sums have changed: rank 0 sends the residuals of all of them.
    if (!same_world && name == kResidual && rank == 0) {
      belongs |= RankIn(block.name, kResidualOfSums) >= 0;
    }
    if (!belongs) continue;
    if (block.values.size() != values.size()) {
      return DoesNotFit(block.name, block.values.size(), values.size());
    }
    for (size_t i = 0; i < values.size(); ++i) values[i] += block.values[i];
  }
  return OkStatus();
}

// Rank 0 builds the values of one rank after the other, its own last: it has memory for one.
// The source's own state is collected last, because its block holds that of the others before.
Status CompressionState::DistributeOwn(Communicator* ranks, int source_rank,
                                       const StateBlock& block) const {
  const int world = ranks->world_size();
  for (int next = 1; next <= world; ++next) {
    const int to = (source_rank + next) % world;
    if (ranks->rank() == source_rank) {
      RT_RETURN_IF_ERROR(Collect(block.name, to, world, block.values));
    }
    RT_RETURN_IF_ERROR(ranks->Copy(block.values, source_rank, to));
  }
  return OkStatus();
}

Status CompressionState::Distribute(Communicator* ranks, int source_rank,
                                    std::span<const StateBlock> blocks) const {
  std::array<int64_t, 2> has{empty() ? 0 : 1, HasOwn() ? 1 : 0};
  RT_RETURN_IF_ERROR(ranks->Broadcast(std::span<int64_t>(has), source_rank));
  for (const StateBlock& block : blocks) {
    if (block.own) {
      std::ranges::fill(block.values, 0.0F);
      if (has[1] > 0) RT_RETURN_IF_ERROR(DistributeOwn(ranks, source_rank, block));
      continue;
    }
    if (has[0] == 0) continue;
    const auto found = std::ranges::find_if(
        blocks_, [&](const Block& b) { return b.name == SharedName(block.name); });
    if (found != blocks_.end()) {
      if (found->values.size() != block.values.size()) {
        return DoesNotFit(found->name, found->values.size(), block.values.size());
      }
      std::ranges::copy(found->values, block.values.begin());
    }
    RT_RETURN_IF_ERROR(ranks->Broadcast(block.values, source_rank));
  }
  return OkStatus();
}

bool CompressionState::Needs(int rank, int world, int from, int saved_world) {
  return from % world == rank || (rank == 0 && world != saved_world);
}

Status CompressionState::AddPart(const SafetensorsFile& part, int from, int saved_world, int rank,
                                 int world, std::span<const StateBlock> blocks) {
  const bool same_world = saved_world == world;
  const auto add = [&](const std::string& saved, std::span<float> to) -> Status {
    const std::string name = OwnName(saved, from);
    if (!part.Has(name)) return OkStatus();
    RT_ASSIGN_OR_RETURN(const std::span<const float> values, part.F32(name, {}));
    if (values.size() != to.size()) return DoesNotFit(name, values.size(), to.size());
    if (!AllFinite(values)) return DataLoss(fmt::format("'{}' has a NaN or infinity", name));
    for (size_t i = 0; i < to.size(); ++i) to[i] += values[i];
    return OkStatus();
  };
  for (const StateBlock& block : blocks) {
    if (!block.own) continue;
    const bool sums = block.name == kResidualOfSums;
    if (from % world == rank && (same_world || !sums)) {
      RT_RETURN_IF_ERROR(add(block.name, block.values));
    }
    // The owners of the sums have changed: rank 0 sends the residuals of all of them.
    if (!same_world && rank == 0 && block.name == kResidual) {
      RT_RETURN_IF_ERROR(add(kResidualOfSums, block.values));
    }
  }
  return OkStatus();
}

}  // namespace ringtail
