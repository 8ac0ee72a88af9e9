#include "optim/parameter_walk.h"

#include <algorithm>

#include "core/parallel_for.h"

namespace ringtail {
namespace {

// 64 KiB of each stream: enough to hide the cost of a range, small enough to share out evenly.
constexpr int64_t kRangeFloats = 1 << 14;
constexpr int64_t kMinRangesPerThread = 4;

int64_t NumRanges(const ParameterArena& arena) {
  const int64_t size = static_cast<int64_t>(arena.values().size());
  return (size + kRangeFloats - 1) / kRangeFloats;
}

void WalkRange(std::span<const Parameter> parameters, int64_t begin, int64_t end,
               const std::function<void(const ParameterPart&)>& fn) {
  auto p = std::partition_point(parameters.begin(), parameters.end(),
                                [&](const Parameter& p) { return p.offset + p.elements <= begin; });
  for (; p != parameters.end() && p->offset < end; ++p) {
    const ParameterPart part{static_cast<size_t>(p - parameters.begin()),
                             std::max(begin, p->offset), std::min(end, p->offset + p->elements)};
    if (part.begin < part.end) fn(part);
  }
}

}  // namespace

void WalkParameters(const ParameterArena& arena,
                    const std::function<void(const ParameterPart&)>& fn) {
  ParallelFor(NumRanges(arena), kMinRangesPerThread, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      WalkRange(arena.parameters(), r * kRangeFloats, (r + 1) * kRangeFloats, fn);
    }
  });
}

std::vector<NormSquares> SumOverParameters(
    const ParameterArena& arena, const std::function<NormSquares(const ParameterPart&)>& fn) {
  // From one part to the next, the range or the parameter increases, and neither decreases: their
  // sum is a unique index of the part.
  struct Place {
    size_t parameter = 0;
    NormSquares squares;
  };
  std::vector<Place> places(NumRanges(arena) + arena.parameters().size());
  WalkParameters(arena, [&](const ParameterPart& part) {
    places[part.begin / kRangeFloats + part.parameter] = {part.parameter, fn(part)};
  });
  std::vector<NormSquares> sums(arena.parameters().size());
  if (sums.empty()) return sums;
  for (const Place& place : places) {
    sums[place.parameter].weight += place.squares.weight;
    sums[place.parameter].update += place.squares.update;
  }
  return sums;
}

}  // namespace ringtail
