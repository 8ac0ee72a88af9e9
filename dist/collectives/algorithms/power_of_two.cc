#include "dist/collectives/algorithms/power_of_two.h"

#include <bit>
#include <vector>

namespace ringtail {

Plan FoldedAllreduce(int rank, int world, int64_t count, PowerOfTwoAllreduce allreduce) {
  CheckPlanArguments(rank, world, count);
  const int places = static_cast<int>(std::bit_floor(static_cast<unsigned>(world)));
  const int pairs = world - places;
  std::vector<int> rank_at_place(static_cast<size_t>(places));
  for (int i = 0; i < places; ++i) {
    rank_at_place[static_cast<size_t>(i)] = i < pairs ? 2 * i + 1 : i + pairs;
  }

  const bool in_pair = rank < 2 * pairs, gives = in_pair && rank % 2 == 0;
  const ElementRange all = {.offset = 0, .count = count};
  Plan fold;
  if (gives) fold.AddRound({Step::Send(rank + 1, all)});
  if (in_pair && !gives) fold.AddRound({Step::ReceiveReduce(rank - 1, all)});

  Plan plan = fold;
  if (!gives) {
    const int place = in_pair ? rank / 2 : rank - pairs;
    plan.Append(WithPeers(allreduce(place, places, count), rank_at_place));
  }
  plan.Append(Backwards(fold));
  return plan;
}

}  // namespace ringtail
