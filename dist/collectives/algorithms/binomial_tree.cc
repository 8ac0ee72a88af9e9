#include "dist/collectives/algorithms/binomial_tree.h"

#include <fmt/format.h>

#include "core/check.h"

namespace ringtail {

Plan BinomialReduce(int rank, int world, int64_t count, int root) {
  CheckPlanArguments(rank, world, count);
  RT_CHECK(root >= 0 && root < world,
           fmt::format("root {} is not one of a world of {}", root, world));
  const ElementRange all = {.offset = 0, .count = count};
  const int place = (rank - root + world) % world;
  const auto rank_at = [root, world](int p) { return (p + root) % world; };
  Plan plan;
  for (int bit = 1; bit < world; bit *= 2) {
    if ((place & bit) != 0) {
      plan.AddRound({Step::Send(rank_at(place - bit), all)});
      break;
    }
    if (place + bit < world) plan.AddRound({Step::ReceiveReduce(rank_at(place + bit), all)});
  }
  return plan;
}

Plan BinomialBroadcast(int rank, int world, int64_t count, int root) {
  return Backwards(BinomialReduce(rank, world, count, root));
}

Plan BinomialTreeAllreduce(int rank, int world, int64_t count) {
  Plan plan = BinomialReduce(rank, world, count, 0);
  plan.Append(Backwards(plan));
  return plan;
}

}  // namespace ringtail
