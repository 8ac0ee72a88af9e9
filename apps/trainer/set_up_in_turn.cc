#include "apps/trainer/set_up_in_turn.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "apps/trainer/checkpoint/numerics.h"

namespace ringtail {
namespace {

// What was measured with another instruction set is not for this rank, which measures for itself.
Status TakeThatOfOwnKind(const std::string& used) {
  Status status = TakeAlgorithms(used);
  return status.code() == StatusCode::kFailedPrecondition ? OkStatus() : status;
}

}  // namespace

Status SetUpInTurn(TrainingWorld* world, const std::string& kind,
                   const std::function<Status()>& set_up) {
  const std::string own = fmt::format("{}, {}", ThisMachine(), kind);
  RT_ASSIGN_OR_RETURN(const std::vector<std::string> kinds, world->GatherText(own));
  bool done = false;
  for (auto one = kinds.begin(); one != kinds.end(); ++one) {
    if (std::find(kinds.begin(), one, *one) != one) continue;  // not the first of them
    const auto first = static_cast<int>(one - kinds.begin());
    const bool measures = world->rank() == first;
    if (measures) {
      RT_RETURN_IF_ERROR(set_up());
      done = true;
    }
    RT_ASSIGN_OR_RETURN(const std::vector<std::string> used,
                        world->GatherText(measures ? UsedAlgorithms() : ""));
    if (!measures) RT_RETURN_IF_ERROR(TakeThatOfOwnKind(used[first]));
  }
  return done ? OkStatus() : set_up();
}

}  // namespace ringtail
