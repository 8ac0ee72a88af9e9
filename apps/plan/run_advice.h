// What a run of several hosts should be told before its first step: that together they train slower
// than one of them would alone, or that another way that is as accurate is much faster.
//
//   measured here: a step of this rank's batch with images of    (measure_facts.h)
//   each size, the optimizer
//   measured when the ranks joined: the links                   (dist/probe.h)
//   predicted: images/s of the run as it is set, of one host alone, of what dist.plan: AUTO would
//   choose                                                      (dist/planner/)
//
// Speeds are of the mean step of the whole run (dist/planner/image_sizes.h): what is slower than
// one host with small images may be faster with large ones. The run is predicted with its own
// batch, in as many parts as it has (train.accumulation), one host and the plan with that of one
// host (plan_flags.h), whose accuracy is known. So a run that is fast because its batch has grown
// with its ranks is told nothing, unless one host is faster still or the plan is, by kWorthSaying;
// then the sentence names both batches.
//
// Thread-safety: the trainer thread of rank 0.
#ifndef RINGTAIL_APPS_PLAN_RUN_ADVICE_H_
#define RINGTAIL_APPS_PLAN_RUN_ADVICE_H_

#include <functional>
#include <optional>
#include <string>

#include "apps/trainer/generation.h"
#include "core/status.h"
#include "dist/planner/choice.h"
#include "dist/planner/network_facts.h"
#include "dist/planner/planner.pb.h"
#include "dist/planner/prediction.h"
#include "dist/planner/search.h"
#include "dist/planner/server_model.h"

namespace ringtail {

// Another way has to be faster by this factor to be worth a sentence.
inline constexpr double kWorthSaying = 1.3;

// What is predicted of the run as it is set, in its first epoch with images of this size, with rounds of so
// many local steps; 0: of its steps before rounds begin, or of a run without them.
using PredictPeriod = std::function<StatusOr<Prediction>(int64_t image_size, int local_steps)>;

// One sentence; nothing if there is nothing to say, if there is only one host, or if the run
// follows a plan. A run that finds its period by itself (dist.local.period_rule) is predicted with
// the longest rounds that AUTO may take, or the shortest of QUADRATIC, with which it begins. Cost:
// a few steps of this rank's batch with images of each size, and of a half and a quarter of it if
// the plan's is smaller. `predict`, if given, is set if there are several hosts without servers
// (prediction_report.h).
StatusOr<std::optional<std::string>> AdviseRun(const Generation& generation,
                                               PredictPeriod* predict = nullptr);

// `current` with rounds of so many local steps, or, with 0, with gradients of every step.
Choice WithRounds(Choice current, int local_steps);

// The steps of a run before its rounds begin (dist.local.start_epoch).
struct StepsBeforeRounds {
  double share = 0;  // of all steps, < 1; 0: there are none
  Choice choice;
};

// `current` as seen by one of `ranks` ranks, which computes `own` images of a step: where images are
// divided by speed all finish together, so that the step is as long as if each had as many.
Choice WithShare(Choice current, int64_t own, int64_t ranks);

// The same from known facts: `current` as the run is set, after the steps `before`; `space` what a plan
// would choose from, its one batch that of one host; `plan_flags` what sets such a plan. Of a run with
// servers (dist.asynchronous) nothing else is predicted.
StatusOr<std::optional<std::string>> AdviseOn(const PlannerFacts& facts,
                                              const NetworkFacts& network, const Choice& current,
                                              const SearchSpace& space,
                                              const std::string& plan_flags,
                                              const StepsBeforeRounds& before = {});
StatusOr<std::optional<std::string>> AdviseOn(const PlannerFacts& facts,
                                              const NetworkFacts& network,
                                              const ServerPrediction& current,
                                              const SearchSpace& space,
                                              const std::string& plan_flags);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_RUN_ADVICE_H_
