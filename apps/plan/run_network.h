// The network and the cores of a run, for the planner: as probed when its ranks joined.
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_APPS_PLAN_RUN_NETWORK_H_
#define RINGTAIL_APPS_PLAN_RUN_NETWORK_H_

#include "apps/trainer/training_world.h"
#include "core/status.h"
#include "dist/planner/network_facts.h"

namespace ringtail {

// InvalidArgument unless every host has as many ranks: the planner knows no others. Ranks are taken
// to have as many compute threads as this one.
StatusOr<NetworkFacts> NetworkOf(const TrainingWorld& world);

// The ranks on this rank's host.
int RanksHere(const TrainingWorld& world);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_RUN_NETWORK_H_
