#include "dist/compression/exchange/summed_exchange.h"

#include <algorithm>
#include <functional>

namespace ringtail {
namespace {

constexpr int kMostRounds = 2;

using Visit = std::function<void(SummedGradient&, std::span<float> share)>;

// Calls visit for each gradient of the round, with its range of `together`.
void ForEachShare(std::span<SummedGradient> gradients, int round, std::span<float> together,
                  const Visit& visit) {
  size_t offset = 0;
  for (SummedGradient& g : gradients) {
    const auto floats = static_cast<size_t>(g.Floats(round));
    if (floats > 0) visit(g, together.subspan(offset, floats));
    offset += floats;
  }
}

}  // namespace

int64_t SummedGradient::Floats(int round) const {
  if (sketch == nullptr) return round == 0 ? static_cast<int64_t>(gradient.size()) : 0;
  return round < sketch->rounds() ? sketch->Floats(round) : 0;
}

Status SummedExchange::Run(Communicator* ranks, std::span<SummedGradient> gradients) {
  for (SummedGradient& g : gradients) {
    if (g.sketch != nullptr) g.pending = g.memory->Add(g.gradient);
  }
  for (int round = 0; round < kMostRounds; ++round) {
    RT_RETURN_IF_ERROR(RunRound(ranks, gradients, round));
  }
  const float share = 1.0F / static_cast<float>(ranks->world_size());
  for (const SummedGradient& g : gradients) {
    if (g.sketch == nullptr) continue;
    g.sketch->Unpack(g.context, g.gradient);
    g.memory->Sent(g.gradient, share);
  }
  return OkStatus();
}

Status SummedExchange::RunRound(Communicator* ranks, std::span<SummedGradient> gradients,
                                int round) {
  int64_t floats = 0;
  for (const SummedGradient& g : gradients) floats += g.Floats(round);
  if (floats == 0) return OkStatus();
  together_.resize(floats);
  ForEachShare(gradients, round, together_, [&](SummedGradient& g, std::span<float> share) {
    if (g.sketch != nullptr) {
      g.sketch->Pack(round, g.context, g.pending, share);
    } else {
      std::ranges::copy(g.gradient, share.begin());
    }
  });
  RT_RETURN_IF_ERROR(ranks->AllReduce(std::span(together_)));
  ForEachShare(gradients, round, together_, [&](SummedGradient& g, std::span<float> share) {
    if (g.sketch != nullptr) {
      g.sketch->Take(round, g.context, share);
    } else {
      std::ranges::copy(share, g.gradient.begin());
    }
  });
  return OkStatus();
}

}  // namespace ringtail
