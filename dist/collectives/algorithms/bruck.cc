#include "dist/collectives/algorithms/bruck.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/check.h"

namespace ringtail {
namespace {

// Parts of a world that follow each other in the array.
class Parts {
 public:
  explicit Parts(std::span<const int64_t> ends) : ends_(ends) {}

  int world() const { return static_cast<int>(ends_.size()); }
  // Parts last - count + 1 .. last, modulo the world: what lies before the end of the array, and
  // what lies behind its beginning. The second may have no elements.
  std::array<ElementRange, 2> Circular(int last, int count) const {
    const int end = (last + world()) % world() + 1, first = end - count;
    if (first >= 0) return {Between(first, end), ElementRange{}};
    return {Between(first + world(), world()), Between(0, end)};
  }

 private:
  ElementRange Between(int first, int end) const {
    const int64_t offset = first == 0 ? 0 : ends_[static_cast<size_t>(first - 1)];
    return {.offset = offset, .count = ends_[static_cast<size_t>(end - 1)] - offset};
  }

  const std::span<const int64_t> ends_;
};

}  // namespace

Plan BruckAllgather(int rank, std::span<const int64_t> ends) {
  const Parts parts(ends);
  const int world = parts.world();
  CheckPlanArguments(rank, world, ends.back());
  RT_CHECK(ends.front() >= 0 && std::ranges::is_sorted(ends), "parts follow each other");
  Plan plan;
  for (int distance = 1; distance < world; distance *= 2) {
    const int to = (rank + distance) % world, from = (rank + world - distance) % world;
    const int count = std::min(distance, world - distance);
    std::vector<Step> steps;
    for (const ElementRange& range : parts.Circular(rank, count)) {
      steps.push_back(Step::Send(to, range));
    }
    for (const ElementRange& range : parts.Circular(from, count)) {
      steps.push_back(Step::ReceiveCopy(from, range));
    }
    plan.AddRound(steps);
  }
  return plan;
}

Plan BruckAllgather(int rank, int world, int64_t count) {
  CheckPlanArguments(rank, world, count);
  std::vector<int64_t> ends;
  ends.reserve(world);
  for (int part = 0; part < world; ++part) ends.push_back(EvenPart(count, world, part).end());
  return BruckAllgather(rank, ends);
}

}  // namespace ringtail
