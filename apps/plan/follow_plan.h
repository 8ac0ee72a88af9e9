// dist.plan: AUTO in `train`: a run that begins is planned, a run that continues keeps its plan.
//
//   plan of    the config that all ranks were given (a checkpoint's), or
//              the checkpoint that rank 0 resumes from, where --config names another file, or
//              a new one, if nothing has been trained yet                       apps/plan/auto_plan.h
//
// The config of a run that begins may hold a plan, too: it was killed before its first checkpoint, or
// --config names another run's. That is followed by as many ranks as it was made for. Other ranks
// take it back (WithoutPlan) and make a new one, since nothing is to be continued: its batch of a rank
// would make another global batch of them.
//
// A run that continues does as it began, whatever dist.plan says by then, and says so: without a plan
// if it has trained without one, by its plan if it has one. Its config says so, too: dist.plan is again
// what it was. A rank that is alone follows no plan, and keeps that of its run for others.
//
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_APPS_PLAN_FOLLOW_PLAN_H_
#define RINGTAIL_APPS_PLAN_FOLLOW_PLAN_H_

#include <optional>

#include "apps/config/run_config.h"
#include "apps/session/world_session.h"
#include "apps/trainer/checkpoint/resume_point.h"
#include "apps/trainer/training_data.h"
#include "core/status.h"

namespace ringtail {

// Whether the run that continues from `head` follows the plan that it began with.
bool BeganByPlan(const ResumeHead& head);

// Whether a run of `config` follows a plan, or is to be planned; as far as this rank knows `head`.
bool FollowsPlan(const RunConfig& config, const std::optional<ResumeHead>& head);

// A run that has trained without a plan continues, though dist.plan says AUTO.
void TellThatNothingIsPlanned();

// All ranks, before training; `head` of rank 0 counts. Returns the config to train with, none if
// that is `loaded`. From then on only the ranks of the plan train (WorldSession::TrainOnly); rank 0
// prints it. `equal_shares`: see MakePlan, as are errors.
StatusOr<std::optional<LoadedConfig>> FollowPlan(const LoadedConfig& loaded,
                                                 const std::optional<ResumeHead>& head,
                                                 const TrainingData& data, bool equal_shares,
                                                 WorldSession* session);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_FOLLOW_PLAN_H_
