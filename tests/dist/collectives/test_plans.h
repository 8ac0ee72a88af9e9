// Three plans by hand, for tests of what runs plans; and what a plan must compute, without threads.
#ifndef RINGTAIL_TESTS_DIST_COLLECTIVES_TEST_PLANS_H_
#define RINGTAIL_TESTS_DIST_COLLECTIVES_TEST_PLANS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/check.h"
#include "dist/collectives/plan.h"

namespace ringtail {

using PlanOf = std::function<Plan(int rank, int world, int64_t count)>;

// All-reduce: each part goes around once to be added up, and once to be known.
Plan TestRing(int rank, int world, int64_t count);
// All-reduce: rank 0 adds up the arrays of all ranks in one round, and sends the sum to all.
Plan TestSingleReducer(int rank, int world, int64_t count);
// All-reduce, world a power of two: with each bit of the rank, both ranks of a pair send all they
// have and add what they get: sends and receives of the same elements in the same round.
Plan TestDoubling(int rank, int world, int64_t count);

// arrays[r] after plans[r] has run, for all r: round by round, every send before every receive.
template <typename T>
void RunInLockStep(const std::vector<Plan>& plans, std::vector<std::vector<T>>* arrays) {
  const size_t world = plans.size();
  size_t rounds = 0;
  for (const Plan& plan : plans) rounds = std::max(rounds, plan.rounds.size());
  std::vector<std::vector<std::vector<T>>> wires(world * world);  // from, to: messages in order
  const auto for_each_step = [&](size_t round, bool sends, const auto& visit) {
    for (size_t rank = 0; rank < world; ++rank) {
      if (round >= plans[rank].rounds.size()) continue;
      for (const Step& step : plans[rank].rounds[round].steps) {
        if ((step.kind == StepKind::kSend) == sends && step.range.count > 0) visit(rank, step);
      }
    }
  };
  for (size_t round = 0; round < rounds; ++round) {
    for_each_step(round, true, [&](size_t rank, const Step& step) {
      const auto begin = (*arrays)[rank].begin() + step.range.offset;
      wires[rank * world + step.peer].emplace_back(begin, begin + step.range.count);
    });
    for_each_step(round, false, [&](size_t rank, const Step& step) {
      auto& wire = wires[step.peer * world + rank];
      RT_CHECK(!wire.empty(), "the plans match");
      for (int64_t i = 0; i < step.range.count; ++i) {
        T& element = (*arrays)[rank][step.range.offset + i];
        element = step.kind == StepKind::kReceiveReduce ? element + wire[0][i] : wire[0][i];
      }
      wire.erase(wire.begin());
    });
  }
}

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_COLLECTIVES_TEST_PLANS_H_
