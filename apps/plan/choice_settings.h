// The fields that make a run train as a planner's choice says, as for --set. Only what differs from
// the config or from the defaults of dist/dist.proto.
//
//   train.batch=32 train.accumulation=1 optim.batch_scaling.reference_batch=256
//   dist.compression={ scheme { top_k { density: 0.001 } } }
//
// And back: a plan that is not followed leaves the config that it was made for.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_PLAN_CHOICE_SETTINGS_H_
#define RINGTAIL_APPS_PLAN_CHOICE_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "apps/run.pb.h"
#include "core/status.h"
#include "dist/planner/planner.pb.h"
#include "dist/planner/prediction.h"
#include "dist/planner/search.h"
#include "dist/planner/shown_choices.h"

namespace ringtail {

// Whose accuracy has to have been shown.
TrainedNet TrainedNetOf(const RunConfig& config);

// What dist.plan: AUTO chooses from: what has been shown to train as accurately as one host
// (dist/planner/shown_choices.h), with the batch, the buckets and the algorithm of the config.
SearchSpace SpaceOf(const RunConfig& config);

// The fewest equal parts of a batch, from `fewest` on.
int64_t EqualParts(int64_t batch, int64_t fewest);

// Images of a rank in a step, in equal parts: at least its share of the choice's batch.
int64_t BatchOfRank(const Prediction& choice);

// Of a run of `config`. A rank computes its images in as many parts as are fastest. The learning
// rate stays what the config's batch gives.
std::vector<std::string> SettingsOf(const Prediction& choice, const PlannerFacts& facts,
                                    const RunConfig& config);

// The config as it was before the plan that it holds was chosen (dist.planned by dist.plan: AUTO), as
// far as that can be told; fields that were set since then stay. The batch of all ranks is the one
// before, or a few images more if the plan's ranks could not have equal shares of it; the parts in
// which it is computed are no larger than the plan's. InvalidArgument if the plan has set fields that
// there are none of.
StatusOr<RunConfig> WithoutPlan(RunConfig config);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_CHOICE_SETTINGS_H_
