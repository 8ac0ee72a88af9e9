#include "dist/collectives/single_reducer.h"

#include <utility>

namespace ringtail {

Plan SingleReducerAllreduce(int rank, int world, int64_t count) {
  CheckPlanArguments(rank, world, count);
  const ElementRange all = {.offset = 0, .count = count};
  Plan plan;
  if (rank != 0) {
    plan.AddRound({Step::Send(0, all)});
    plan.AddRound({Step::ReceiveCopy(0, all)});
    return plan;
  }
  if (world == 1 || count == 0) return plan;
  Round give_back;  // independent steps: all read the same sum
  for (int peer = 1; peer < world; ++peer) {
    plan.AddRound({Step::ReceiveReduce(peer, all)});
    give_back.steps.push_back(Step::Send(peer, all));
  }
  plan.rounds.push_back(std::move(give_back));
  return plan;
}

}  // namespace ringtail
