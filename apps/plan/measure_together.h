// Facts of a job of several ranks, which measure at the same time: they take from each other's caches and
// memory, and transport and signs of life run beside, as while they train.
//
//   rank 0 .. N - 1   MeasureTogether     its own facts
//   all               MeasureCluster      the mean of all ranks' facts, and links and cores as probed
//
// Thread-safety: the trainer thread. Cost: as MeasureFacts, and some kilobytes from rank to rank.
#ifndef RINGTAIL_APPS_PLAN_MEASURE_TOGETHER_H_
#define RINGTAIL_APPS_PLAN_MEASURE_TOGETHER_H_

#include <span>

#include "apps/config/run_config.h"
#include "apps/plan/measure_facts.h"
#include "apps/trainer/training_world.h"
#include "core/status.h"
#include "dist/planner/planner.pb.h"

namespace ringtail {

// All ranks; `options.ranks_here`, `set_up` and `deviation` are the world's: steps begin at the same time on all
// ranks, which are compared step by step (dist/planner/slowest_of.h).
StatusOr<PlannerFacts> MeasureTogether(const LoadedConfig& loaded, MeasureFactsOptions options,
                                       TrainingWorld* world);

// All ranks, with the same result; of a world of one, whose `cluster` is left to the caller, its own.
// InvalidArgument if hosts have different numbers of ranks.
StatusOr<PlannerFacts> MeasureCluster(const LoadedConfig& loaded,
                                      const MeasureFactsOptions& options, TrainingWorld* world);

// Every number with a fraction is the mean; all else is the first one's. InvalidArgument if they are not
// facts of the same network, batches and schemes. `facts`: at least one.
StatusOr<PlannerFacts> MeanFacts(std::span<const PlannerFacts> facts);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_MEASURE_TOGETHER_H_
