#include "apps/launch/own_verbs.h"

#include <string_view>

#include "apps/launch/agent/agent.h"
#include "apps/launch/agent/run_rank.h"

namespace ringtail {

std::optional<int> RunOwnVerb(int count, char** arguments) {
  const std::string_view verb = count > 1 ? arguments[1] : "";
  if (verb == "run-rank") return RunRank(count - 2, arguments + 2);
  if (verb == "agent") return RunAgent();
  return std::nullopt;
}

}  // namespace ringtail
