#include "optim/parameter_walk.h"

#include <algorithm>

#include "core/parallel_for.h"

namespace ringtail {
namespace {

// 64 KiB of each stream: enough to hide the cost of a range, small enough to share out evenly.
constexpr int64_t kRangeFloats = 1 << 14;
constexpr int64_t kMinRangesPerThread = 4;

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
  const int64_t size = static_cast<int64_t>(arena.values().size());
  const int64_t ranges = (size + kRangeFloats - 1) / kRangeFloats;
  ParallelFor(ranges, kMinRangesPerThread, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      WalkRange(arena.parameters(), r * kRangeFloats, (r + 1) * kRangeFloats, fn);
    }
  });
}

}  // namespace ringtail
