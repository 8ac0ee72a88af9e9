// What `dogs_vs_cats plan` prints: one host, every step dense, the fastest choices; which of those
// that have been shown to train as accurately as one host is the fastest, why, and what to set for
// it. As a table or as JSON. Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_PLAN_PLAN_REPORT_H_
#define RINGTAIL_APPS_PLAN_PLAN_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "apps/plan/pipeline_plan.h"
#include "apps/run.pb.h"
#include "core/status.h"
#include "dist/planner/host_choice.h"
#include "dist/planner/network_facts.h"
#include "dist/planner/planner.pb.h"
#include "dist/planner/prediction.h"
#include "dist/planner/search.h"

namespace ringtail {

struct PlanAnswer {
  Prediction dense;    // on all hosts, in every step, with the config's buckets
  SearchResult found;  // whatever it costs in accuracy
  // The best of the shown choices (dist/planner/shown_choices.h); of all, if none was to be tried.
  Prediction recommended;
  bool shown = true;  // whether what is recommended is one of these
  std::optional<HostChoice>
      unequal;                    // which hosts train, if they differ; `recommended` is its best
  std::vector<Prediction> asked;  // every scheme with every period that was asked for
  std::vector<std::string> settings;     // for what is recommended (choice_settings.h)
  std::optional<PipelinePlan> pipeline;  // of all ranks; none: it is impossible, or not asked for
};

struct PlanQuestion {
  const PlannerFacts* facts = nullptr;  // the simulator's
  const RunConfig* config = nullptr;
  SearchSpace space;
  std::vector<int> periods;  // to be predicted whether they are good or not
  // Of each host, as ChooseHosts takes it, beginning with 1; empty: hosts are equal.
  std::vector<double> slowness = {};
};

// What is recommended is of the hosts that are asked about; everything else takes them to be as fast as
// the facts. Dense and asked predictions are of all hosts, with the first of the space's
// batches and the config's buckets.
StatusOr<PlanAnswer> AnswerPlan(StepSimulator* simulator, const PlanQuestion& question);

std::string PlanTable(const PlannerFacts& facts, const NetworkFacts& network,
                      const PlanAnswer& answer);
// One object, for `--json`.
std::string PlanJson(const PlannerFacts& facts, const NetworkFacts& network,
                     const PlanAnswer& answer);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_PLAN_REPORT_H_
