#include "dist/compression/compression_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace ringtail {
namespace {

using Compressor = GradientCompressor;

constexpr std::string_view kPrefix = "compression.";
const std::string kUnsent = Compressor::kUnsent, kUnsentSums = Compressor::kUnsentSums;

std::string SharedName(const std::string& block) { return fmt::format("{}{}", kPrefix, block); }

std::string OwnName(const std::string& block, int rank) {
  return fmt::format("{}{}.{}", kPrefix, block, rank);
}

// The rank in the name of one rank's block; -1 if it is none of this.
int RankIn(std::string_view name, const std::string& block) {
  const std::string prefix = SharedName(block) + ".";
  if (!name.starts_with(prefix)) return -1;
  const std::string_view number = name.substr(prefix.size());
  int rank = -1;
  const auto [end, error] = std::from_chars(number.begin(), number.end(), rank);
  return error == std::errc() && end == number.end() ? rank : -1;
}

Status DoesNotFit(const std::string& name, size_t has, size_t wanted) {
  return FailedPrecondition(
      fmt::format("'{}' has {} numbers, where this network has {}", name, has, wanted));
}

}  // namespace

Status CompressionState::Gather(Communicator* ranks, GradientCompressor* compressor) {
  blocks_.clear();
  const bool leads = ranks->rank() == 0;
  for (const GradientCompressor::StateBlock& block : compressor->state()) {
    const auto add = [&](std::string name) -> std::vector<float>& {
      blocks_.push_back({.name = std::move(name),
                         .shape = {static_cast<int64_t>(block.values.size())},
                         .values = {block.values.begin(), block.values.end()}});
      return blocks_.back().values;
    };
    if (!block.own) {
      if (leads) add(SharedName(block.name));
      continue;
    }
    for (int from = 0; from < ranks->world_size(); ++from) {
      const std::span<float> values = leads ? add(OwnName(block.name, from)) : block.values;
      RT_RETURN_IF_ERROR(ranks->Copy(values, from, 0));
    }
  }
  return OkStatus();
}

std::vector<TensorView> CompressionState::Tensors() const {
  std::vector<TensorView> tensors;
  for (const Block& block : blocks_) {
    tensors.push_back(ViewF32(block.name, block.shape, block.values));
  }
  return tensors;
}

StatusOr<CompressionState> CompressionState::Read(const SafetensorsFile& file) {
  CompressionState state;
  for (const auto& [name, entry] : file.entries()) {
    if (!name.starts_with(kPrefix)) continue;
    RT_ASSIGN_OR_RETURN(const std::span<const float> values, file.F32(name, entry.shape));
    if (!std::ranges::all_of(values, [](float v) { return std::isfinite(v); })) {
      return DataLoss(fmt::format("'{}' has a NaN or infinity", name));
    }
    state.blocks_.push_back(
        {.name = name, .shape = entry.shape, .values = {values.begin(), values.end()}});
  }
  return state;
}

int CompressionState::SavedWorld() const {
  return static_cast<int>(std::ranges::count_if(
      blocks_, [](const Block& block) { return RankIn(block.name, kUnsent) >= 0; }));
}

Status CompressionState::Collect(const std::string& name, int rank, int world,
                                 std::span<float> values) const {
  std::ranges::fill(values, 0.0F);
  const bool same_world = SavedWorld() == world;
  for (const Block& block : blocks_) {
    const int from = RankIn(block.name, name);
    bool belongs = from >= 0 && from % world == rank;
    if (!same_world && name == kUnsentSums) belongs = false;
    // Who adds up which part has changed: rank 0 sends for all of them.
    if (!same_world && name == kUnsent && rank == 0)
      belongs |= RankIn(block.name, kUnsentSums) >= 0;
    if (!belongs) continue;
    if (block.values.size() != values.size()) {
      return DoesNotFit(block.name, block.values.size(), values.size());
    }
    for (size_t i = 0; i < values.size(); ++i) values[i] += block.values[i];
  }
  return OkStatus();
}

// Rank 0 makes one rank's after the other's, its own last: it has memory for one.
Status CompressionState::DistributeOwn(Communicator* ranks,
                                       const GradientCompressor::StateBlock& block) const {
  for (int to = ranks->world_size() - 1; to >= 0; --to) {
    if (ranks->rank() == 0) {
      RT_RETURN_IF_ERROR(Collect(block.name, to, ranks->world_size(), block.values));
    }
    RT_RETURN_IF_ERROR(ranks->Copy(block.values, 0, to));
  }
  return OkStatus();
}

Status CompressionState::Distribute(Communicator* ranks, GradientCompressor* compressor) const {
  std::array<int64_t, 1> any{empty() ? 0 : 1};
  RT_RETURN_IF_ERROR(ranks->Broadcast(std::span<int64_t>(any), 0));
  if (any[0] == 0) return OkStatus();
  for (const GradientCompressor::StateBlock& block : compressor->state()) {
    if (block.own) {
      RT_RETURN_IF_ERROR(DistributeOwn(ranks, block));
      continue;
    }
    const auto found = std::ranges::find_if(
        blocks_, [&](const Block& b) { return b.name == SharedName(block.name); });
    if (found != blocks_.end()) {
      if (found->values.size() != block.values.size()) {
        return DoesNotFit(found->name, found->values.size(), block.values.size());
      }
      std::ranges::copy(found->values, block.values.begin());
    }
    RT_RETURN_IF_ERROR(ranks->Broadcast(block.values, 0));
  }
  return OkStatus();
}

}  // namespace ringtail
