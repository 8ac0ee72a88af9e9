#include "apps/plan/follow_plan.h"

#include <fmt/format.h>

#include <utility>

#include "apps/plan/auto_plan.h"
#include "apps/plan/choice_settings.h"
#include "apps/print.h"
#include "core/config/text_config.h"
#include "core/logging.h"
#include "core/text/counted.h"

namespace ringtail {
namespace {

// Whether the config holds a plan for a world of another size.
bool IsPlannedForOthers(const LoadedConfig& loaded, int ranks) {
  return loaded.config.dist().has_planned() && loaded.config.dist().planned().world() != ranks;
}

// What it was before that plan; none if it holds no such.
StatusOr<std::optional<LoadedConfig>> BeforePlan(const LoadedConfig& loaded, int ranks) {
  if (!IsPlannedForOthers(loaded, ranks)) return std::optional<LoadedConfig>();
  RT_ASSIGN_OR_RETURN(const RunConfig config, WithoutPlan(loaded.config));
  RT_ASSIGN_OR_RETURN(LoadedConfig before,
                      ParseRunConfig(PrintTextConfig(config), "the config without its plan", {}));
  return std::optional(std::move(before));
}

// None: the run is to be planned. An empty plan: it has none, and continues without.
StatusOr<std::optional<Planned>> PlanOfRun(const LoadedConfig& loaded,
                                           const std::optional<ResumeHead>& head, int ranks) {
  if (!head && IsPlannedForOthers(loaded, ranks)) return std::optional<Planned>();
  if (loaded.config.dist().has_planned()) {
    if (!head)
      LogInfo(
          "the run begins by the plan that its config holds, dist.planned; a config without it is "
          "planned anew");
    return std::optional(loaded.config.dist().planned());
  }
  if (!head) return std::optional<Planned>();
  RT_ASSIGN_OR_RETURN(const LoadedConfig begun, ParseRunConfig(head->config_text, head->path, {}));
  const DistConfig& dist = begun.config.dist();
  if (dist.has_planned()) return std::optional(dist.planned());
  if (head->progress.step == 0) return std::optional<Planned>();
  LogWarning("dist.plan: AUTO chooses at the first step only; this run continues as it began");
  return std::optional(Planned());
}

void TellThatItIsOutdated(const LoadedConfig& loaded, const LoadedConfig& before, int ranks) {
  LogInfo(fmt::format(
      "the plan that the config holds was made for {} and nothing was trained by it: of {} the run "
      "{}, with {} in a step",
      Counted(loaded.config.dist().planned().world(), "rank"), Counted(ranks, "rank"),
      ranks == 1 ? "begins without a plan" : "is planned anew",
      Counted(before.config.train().batch(), "image")));
}

// A rank that is alone follows no plan.
StatusOr<std::optional<LoadedConfig>> Alone(const LoadedConfig& loaded, bool begins) {
  if (!begins) return std::optional<LoadedConfig>();
  RT_ASSIGN_OR_RETURN(std::optional<LoadedConfig> before, BeforePlan(loaded, /*ranks=*/1));
  if (before) TellThatItIsOutdated(loaded, *before, /*ranks=*/1);
  return before;
}

// Of rank 0: as PlanOfRun; none only if what was `before` can be planned.
StatusOr<std::optional<Planned>> EarlierPlan(const LoadedConfig& loaded,
                                             const std::optional<ResumeHead>& head,
                                             const StatusOr<std::optional<LoadedConfig>>& before,
                                             int ranks) {
  RT_ASSIGN_OR_RETURN(std::optional<Planned> plan, PlanOfRun(loaded, head, ranks));
  if (plan) return plan;
  RT_RETURN_IF_ERROR(Status(before.status()));
  if (*before) TellThatItIsOutdated(loaded, **before, ranks);
  return plan;
}

}  // namespace

StatusOr<std::optional<LoadedConfig>> FollowPlan(const LoadedConfig& loaded,
                                                 const std::optional<ResumeHead>& head,
                                                 const TrainingData& data, bool equal_shares,
                                                 WorldSession* session) {
  TrainingWorld* const everyone = session->everyone();
  std::optional<LoadedConfig> planned;
  if (loaded.config.dist().plan() != DistConfig::AUTO) return planned;
  if (everyone->alone()) return Alone(loaded, /*begins=*/!head);
  const int ranks = everyone->size();
  const auto before = BeforePlan(loaded, ranks);
  const LoadedConfig& to_plan = before.ok() && *before ? **before : loaded;
  StatusOr<std::optional<Planned>> begun = std::optional<Planned>();
  if (everyone->leads()) begun = EarlierPlan(loaded, head, before, ranks);
  RT_ASSIGN_OR_RETURN(const Planned plan,
                      EarlierOrNewPlan(begun, to_plan, &data, equal_shares, everyone));
  if (plan.rank_size() == 0) return planned;
  RT_ASSIGN_OR_RETURN(planned, WithPlan(plan.world() == ranks ? to_plan : loaded, plan, ranks));
  if (everyone->leads()) Print("plan: {}\n", Words(plan, ranks));
  const RankGroup group = TrainingRanks(plan, ranks);
  const bool divides =
      planned->config.dist().model_parallel().linear() != ModelParallelConfig::WHOLE;
  if (group.size() < ranks || divides) {
    RT_RETURN_IF_ERROR(session->TrainOnly(group, planned->config.dist()));
  }
  return planned;
}

}  // namespace ringtail
