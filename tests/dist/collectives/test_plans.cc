#include "tests/dist/collectives/test_plans.h"

namespace ringtail {

Plan TestRing(int rank, int world, int64_t count) {
  const auto part = [&](int i) { return EvenPart(count, world, ((i % world) + world) % world); };
  const int next = (rank + 1) % world, previous = (rank + world - 1) % world;
  Plan plan;
  for (int i = 0; i + 1 < world; ++i) {
    plan.rounds.push_back({{{StepKind::kSend, next, part(rank - i)},
                            {StepKind::kReceiveReduce, previous, part(rank - i - 1)}}});
  }
  for (int i = 0; i + 1 < world; ++i) {
    plan.rounds.push_back({{{StepKind::kSend, next, part(rank + 1 - i)},
                            {StepKind::kReceiveCopy, previous, part(rank - i)}}});
  }
  return plan;
}

Plan TestSingleReducer(int rank, int world, int64_t count) {
  const ElementRange all{.offset = 0, .count = count};
  if (rank != 0) {
    return {{{{{StepKind::kSend, 0, all}}}, {{{StepKind::kReceiveCopy, 0, all}}}}};
  }
  Round gather, scatter;
  for (int peer = 1; peer < world; ++peer) {
    gather.steps.push_back({StepKind::kReceiveReduce, peer, all});
    scatter.steps.push_back({StepKind::kSend, peer, all});
  }
  return {{gather, scatter}};
}

Plan TestDoubling(int rank, int world, int64_t count) {
  const ElementRange all{.offset = 0, .count = count};
  Plan plan;
  for (int bit = 1; bit < world; bit *= 2) {
    plan.rounds.push_back(
        {{{StepKind::kSend, rank ^ bit, all}, {StepKind::kReceiveReduce, rank ^ bit, all}}});
  }
  return plan;
}

}  // namespace ringtail
