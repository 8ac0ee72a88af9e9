#include "dist/collectives/algorithms/halving_doubling.h"

#include "dist/collectives/algorithms/power_of_two.h"

namespace ringtail {
namespace {

Plan RecursiveHalving(int rank, int world, int64_t count) {
  ElementRange mine = {.offset = 0, .count = count};
  Plan plan;
  for (int bit = 1; bit < world; bit *= 2) {
    const int partner = rank ^ bit;
    const ElementRange lower = {.offset = mine.offset, .count = mine.count - mine.count / 2};
    const ElementRange upper = {.offset = lower.end(), .count = mine.count / 2};
    const bool keeps_lower = (rank & bit) == 0;
    mine = keeps_lower ? lower : upper;
    plan.AddRound(
        {Step::Send(partner, keeps_lower ? upper : lower), Step::ReceiveReduce(partner, mine)});
  }
  return plan;
}

Plan HalveThenDouble(int rank, int world, int64_t count) {
  Plan plan = RecursiveHalving(rank, world, count);
  plan.Append(Backwards(plan));
  return plan;
}

}  // namespace

Plan HalvingDoublingAllreduce(int rank, int world, int64_t count) {
  return FoldedAllreduce(rank, world, count, HalveThenDouble);
}

}  // namespace ringtail
