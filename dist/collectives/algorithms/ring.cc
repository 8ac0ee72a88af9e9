#include "dist/collectives/algorithms/ring.h"

namespace ringtail {
namespace {

// The place of one rank in the ring.
struct Place {
  int rank, world;
  int64_t count;

  int next() const { return (rank + 1) % world; }
  int before() const { return (rank + world - 1) % world; }
  // The part of the rank that is `distance` places before this one, at most twice round the ring.
  ElementRange PartBefore(int distance) const {
    return EvenPart(count, world, (rank + 2 * world - distance) % world);
  }
};

}  // namespace

Plan RingReduceScatter(int rank, int world, int64_t count) {
  CheckPlanArguments(rank, world, count);
  const Place ring = {.rank = rank, .world = world, .count = count};
  Plan plan;
  for (int s = 0; s < world - 1; ++s) {
    plan.AddRound({Step::Send(ring.next(), ring.PartBefore(1 + s)),
                   Step::ReceiveReduce(ring.before(), ring.PartBefore(2 + s))});
  }
  return plan;
}

Plan RingAllgather(int rank, int world, int64_t count) {
  CheckPlanArguments(rank, world, count);
  const Place ring = {.rank = rank, .world = world, .count = count};
  Plan plan;
  for (int s = 0; s < world - 1; ++s) {
    plan.AddRound({Step::Send(ring.next(), ring.PartBefore(s)),
                   Step::ReceiveCopy(ring.before(), ring.PartBefore(1 + s))});
  }
  return plan;
}

Plan RingAllreduce(int rank, int world, int64_t count) {
  Plan plan = RingReduceScatter(rank, world, count);
  plan.Append(RingAllgather(rank, world, count));
  return plan;
}

}  // namespace ringtail
