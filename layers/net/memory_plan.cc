#include "layers/net/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"
#include "core/round.h"

namespace ringtail {
namespace {

struct Interval {
  int64_t begin, end;
};

// The lowest offset at which `bytes` fit between the (unsorted) taken intervals.
int64_t LowestGap(std::vector<Interval> taken, int64_t bytes) {
  std::sort(taken.begin(), taken.end(), [](Interval a, Interval b) { return a.begin < b.begin; });
  int64_t offset = 0;
  for (const Interval& t : taken) {
    if (t.begin - offset >= bytes) break;
    offset = std::max(offset, t.end);
  }
  return offset;
}

}  // namespace

MemoryPlan PlanMemory(std::span<const MemoryRequest> requests) {
  MemoryPlan plan;
  plan.offsets.assign(requests.size(), 0);
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return requests[a].bytes > requests[b].bytes; });
  std::vector<size_t> placed;
  for (const size_t i : order) {
    const MemoryRequest& r = requests[i];
    RT_CHECK(r.first <= r.last && r.bytes >= 0, "a buffer's life must not end before it begins");
    if (r.bytes == 0) continue;
    std::vector<Interval> taken;
    for (const size_t j : placed) {
      const MemoryRequest& other = requests[j];
      if (other.first <= r.last && r.first <= other.last) {
        taken.push_back(
            {plan.offsets[j], plan.offsets[j] + RoundUp(other.bytes, kMemoryAlignment)});
      }
    }
    plan.offsets[i] = LowestGap(std::move(taken), RoundUp(r.bytes, kMemoryAlignment));
    plan.total_bytes =
        std::max(plan.total_bytes, plan.offsets[i] + RoundUp(r.bytes, kMemoryAlignment));
    placed.push_back(i);
  }
  return plan;
}

}  // namespace ringtail
