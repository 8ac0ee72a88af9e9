#include "dist/collectives/algorithms/recursive_doubling.h"

#include "dist/collectives/algorithms/power_of_two.h"

namespace ringtail {
namespace {

Plan SwapWithEachBit(int rank, int world, int64_t count) {
  const ElementRange all = {.offset = 0, .count = count};
  Plan plan;
  for (int bit = 1; bit < world; bit *= 2) {
    const int partner = rank ^ bit;
    plan.AddRound({Step::Send(partner, all), Step::ReceiveReduce(partner, all)});
  }
  return plan;
}

}  // namespace

Plan RecursiveDoublingAllreduce(int rank, int world, int64_t count) {
  return FoldedAllreduce(rank, world, count, SwapWithEachBit);
}

}  // namespace ringtail
