#include "apps/trainer/set_up_in_turn.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "apps/trainer/checkpoint/numerics.h"

namespace ringtail {

Status SetUpInTurn(TrainingWorld* world, int64_t batch, const std::function<Status()>& set_up) {
  const std::string own = fmt::format("{}, batch {}", ThisMachine(), batch);
  RT_ASSIGN_OR_RETURN(const std::vector<std::string> kinds, world->GatherText(own));
  bool done = false;
  for (auto kind = kinds.begin(); kind != kinds.end(); ++kind) {
    if (std::find(kinds.begin(), kind, *kind) != kind) continue;  // not the first of them
    const auto first = static_cast<int>(kind - kinds.begin());
    const bool measures = world->rank() == first;
    if (measures) {
      RT_RETURN_IF_ERROR(set_up());
      done = true;
    }
    RT_ASSIGN_OR_RETURN(const std::vector<std::string> used,
                        world->GatherText(measures ? UsedAlgorithms() : ""));
    if (!measures) RT_RETURN_IF_ERROR(TakeAlgorithms(used[first]));
  }
  return done ? OkStatus() : set_up();
}

}  // namespace ringtail
