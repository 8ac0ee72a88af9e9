// The fields that make a run train as a planner's choice says, as for --set. Only what differs from
// the config or from the defaults of dist/dist.proto.
//
//   train.batch=32 train.accumulation=1 optim.batch_scaling.reference_batch=256
//   dist.compression={ scheme { top_k { density: 0.001 } } }
//
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_PLAN_CHOICE_SETTINGS_H_
#define RINGTAIL_APPS_PLAN_CHOICE_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "apps/run.pb.h"
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

// Images of a rank in a step, in equal parts: at least its share of the choice's batch.
int64_t BatchOfRank(const Prediction& choice);

// Of a run of `config`. A rank computes its images in as many parts as are fastest. The learning
// rate stays what the config's batch gives.
std::vector<std::string> SettingsOf(const Prediction& choice, const PlannerFacts& facts,
                                    const RunConfig& config);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_CHOICE_SETTINGS_H_
