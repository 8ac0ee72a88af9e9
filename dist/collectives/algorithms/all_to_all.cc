#include "dist/collectives/algorithms/all_to_all.h"

namespace ringtail {

Plan AllToAll(int rank, int world, int64_t block) {
  CheckPlanArguments(rank, world, 2 * world * block);
  Plan plan;
  for (int s = 1; s < world; ++s) {
    const int to = (rank + s) % world, from = (rank + world - s) % world;
    plan.AddRound({Step::Send(to, {.offset = to * block, .count = block}),
                   Step::ReceiveCopy(from, {.offset = (world + from) * block, .count = block})});
  }
  return plan;
}

}  // namespace ringtail
