#include "dist/collectives/barrier.h"

namespace ringtail {

Plan DisseminationBarrier(int rank, int world) {
  const ElementRange token = {.offset = 0, .count = 1};
  CheckPlanArguments(rank, world, token.count);
  Plan plan;
  for (int distance = 1; distance < world; distance *= 2) {
    plan.AddRound({Step::Send((rank + distance) % world, token),
                   Step::ReceiveCopy((rank + world - distance) % world, token)});
  }
  return plan;
}

}  // namespace ringtail
