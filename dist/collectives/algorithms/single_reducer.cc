#include "dist/collectives/algorithms/single_reducer.h"

namespace ringtail {

Plan SingleReducerAllreduce(int rank, int world, int64_t count) {
  CheckPlanArguments(rank, world, count);
  const ElementRange all = {.offset = 0, .count = count};
  std::vector<Step> steps;
  if (rank != 0) steps.push_back(Step::Send(0, all));
  for (int peer = 1; rank == 0 && peer < world; ++peer) {
    steps.push_back(Step::ReceiveReduce(peer, all));
  }
  Plan plan;
  plan.AddRound(steps);
  plan.Append(Backwards(plan));
  return plan;
}

}  // namespace ringtail
