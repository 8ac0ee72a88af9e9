#include "dist/collectives/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace ringtail {

void Plan::AddRound(std::initializer_list<Step> steps) {
  AddRound(std::span(steps.begin(), steps.size()));
}

void Plan::AddRound(std::span<const Step> steps) {
  Round round;
  for (const Step& step : steps) {
    if (step.range.count > 0) round.steps.push_back(step);
  }
  if (!round.steps.empty()) rounds.push_back(std::move(round));
}

void Plan::Append(Plan next) {
  rounds.insert(rounds.end(), std::make_move_iterator(next.rounds.begin()),
                std::make_move_iterator(next.rounds.end()));
}

Plan Backwards(const Plan& reduction) {
  Plan plan;
  plan.rounds.assign(reduction.rounds.rbegin(), reduction.rounds.rend());
  for (Round& round : plan.rounds) {
    for (Step& step : round.steps) {
      step.kind = step.kind == StepKind::kSend ? StepKind::kReceiveCopy : StepKind::kSend;
    }
  }
  return plan;
}

Plan WithPeers(Plan plan, std::span<const int> ranks) {
  for (Round& round : plan.rounds) {
    for (Step& step : round.steps) step.peer = ranks[static_cast<size_t>(step.peer)];
  }
  return plan;
}

ElementRange EvenPart(int64_t count, int64_t parts, int64_t i) {
  RT_CHECK(count >= 0 && parts > 0 && i >= 0 && i < parts,
           fmt::format("part {} of {} parts of {} elements", i, parts, count));
  const int64_t small = count / parts, larger = count % parts;
  return {.offset = i * small + std::min(i, larger), .count = small + (i < larger ? 1 : 0)};
}

void CheckPlanArguments(int rank, int world, int64_t count) {
  RT_CHECK(rank >= 0 && rank < world,
           fmt::format("rank {} is not one of a world of {}", rank, world));
  RT_CHECK(count >= 0, fmt::format("a plan cannot work on {} elements", count));
}

}  // namespace ringtail
