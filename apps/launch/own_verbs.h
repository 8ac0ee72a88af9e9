// The verbs by which a program that launches ranks starts itself again: "agent" (agent.h) on each
// host and "run-rank" (run_rank.h) for each rank. Thread-safety: the main thread.
#ifndef RINGTAIL_APPS_LAUNCH_OWN_VERBS_H_
#define RINGTAIL_APPS_LAUNCH_OWN_VERBS_H_

#include <optional>

namespace ringtail {

// Runs the verb in `arguments[1]` and returns the exit code; nothing if it is no such verb.
std::optional<int> RunOwnVerb(int count, char** arguments);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_OWN_VERBS_H_
