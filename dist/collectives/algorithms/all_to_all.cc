#include "dist/collectives/algorithms/all_to_all.h"

#include <vector>

namespace ringtail {

Plan AllToAll(int rank, int world, int64_t block) {
  CheckPlanArguments(rank, world, 2 * world * block);
  std::vector<Step> steps;
  steps.reserve(2 * static_cast<size_t>(world - 1));
  for (int s = 1; s < world; ++s) {
    const int to = (rank + s) % world, from = (rank + world - s) % world;
    steps.push_back(Step::Send(to, {.offset = to * block, .count = block}));
    steps.push_back(Step::ReceiveCopy(from, {.offset = (world + from) * block, .count = block}));
  }
  Plan plan;
  plan.AddRound(steps);
  return plan;
}

}  // namespace ringtail
