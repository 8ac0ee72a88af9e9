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

bool AsksForPlan(const LoadedConfig& loaded) {
  return loaded.config.dist().plan() == DistConfig::AUTO;
}

// `loaded` with dist.plan as it is given; none if it is so.
StatusOr<std::optional<LoadedConfig>> PlannedBy(DistConfig::PlanBy by, const LoadedConfig& loaded) {
  std::optional<LoadedConfig> other;
  if (loaded.config.dist().plan() == by) return other;
  RunConfig config = loaded.config;
  config.mutable_dist()->set_plan(by);
  RT_ASSIGN_OR_RETURN(other,
                      ParseRunConfig(PrintTextConfig(config), "the config as the run began", {}));
  return other;
}

void TellThatThePlanIsKept() {
  LogWarning(
      "dist.plan: CONFIG counts at the first step only; this run continues by the plan that it "
      "began with");
}

// Of a run that begins.
std::optional<Planned> PlanToBeginWith(const LoadedConfig& loaded, int ranks) {
  if (!AsksForPlan(loaded)) return Planned();
  if (!loaded.config.dist().has_planned() || IsPlannedForOthers(loaded, ranks)) return std::nullopt;
  LogInfo(
      "the run begins by the plan that its config holds, dist.planned; a config without it is "
      "planned anew");
  return loaded.config.dist().planned();
}

// None: the run is to be planned. An empty plan: it has none, and begins or continues without.
std::optional<Planned> PlanOfRun(const LoadedConfig& loaded, const std::optional<ResumeHead>& head,
                                 int ranks) {
  if (!head) return PlanToBeginWith(loaded, ranks);
  const DistConfig& now = loaded.config.dist();
  if (BeganByPlan(*head)) {
    if (!AsksForPlan(loaded)) TellThatThePlanIsKept();
    return now.has_planned() ? now.planned() : head->config.dist().planned();
  }
  if (!AsksForPlan(loaded)) return Planned();
  if (head->progress.step == 0) return std::nullopt;
  TellThatNothingIsPlanned();
  return Planned();
}

void TellThatItIsOutdated(const LoadedConfig& loaded, const LoadedConfig& before, int ranks) {
  LogInfo(fmt::format(
      "the plan that the config holds was made for {} and nothing was trained by it: of {} the run "
      "{}, with {} in a step",
      Counted(loaded.config.dist().planned().world(), "rank"), Counted(ranks, "rank"),
      ranks == 1 ? "begins without a plan" : "is planned anew",
      Counted(before.config.train().batch(), "image")));
}

StatusOr<std::optional<LoadedConfig>> BeginAlone(const LoadedConfig& loaded) {
  if (!AsksForPlan(loaded)) return std::optional<LoadedConfig>();
  RT_ASSIGN_OR_RETURN(std::optional<LoadedConfig> before, BeforePlan(loaded, /*ranks=*/1));
  if (before) TellThatItIsOutdated(loaded, *before, /*ranks=*/1);
  return before;
}

// The fields that the plan has set stay: the checkpoint is of them.
StatusOr<std::optional<LoadedConfig>> ContinueAlone(const LoadedConfig& loaded,
                                                    const ResumeHead& head) {
  const DistConfig& begun = head.config.dist();
  if (!BeganByPlan(head)) {
    const bool asks_late = AsksForPlan(loaded) && begun.plan() != DistConfig::AUTO;
    if (!asks_late || head.progress.step == 0) return std::optional<LoadedConfig>();
    TellThatNothingIsPlanned();
    return PlannedBy(DistConfig::CONFIG, loaded);
  }
  if (!AsksForPlan(loaded)) TellThatThePlanIsKept();
  if (loaded.config.dist().has_planned()) return PlannedBy(DistConfig::AUTO, loaded);
  RT_ASSIGN_OR_RETURN(LoadedConfig planned, WithPlan(loaded, begun.planned(), /*world_size=*/1));
  planned.config.mutable_dist()->set_plan(DistConfig::AUTO);
  return std::optional(std::move(planned));
}

// Of rank 0: as PlanOfRun; none only if what was `before` can be planned.
StatusOr<std::optional<Planned>> EarlierPlan(const LoadedConfig& loaded,
                                             const std::optional<ResumeHead>& head,
                                             const StatusOr<std::optional<LoadedConfig>>& before,
                                             int ranks) {
  const std::optional<Planned> plan = PlanOfRun(loaded, head, ranks);
  if (plan) return plan;
  RT_RETURN_IF_ERROR(Status(before.status()));
  if (*before) TellThatItIsOutdated(loaded, **before, ranks);
  return plan;
}

}  // namespace

bool BeganByPlan(const ResumeHead& head) {
  const DistConfig& begun = head.config.dist();
  return begun.plan() == DistConfig::AUTO && begun.has_planned();
}

bool FollowsPlan(const RunConfig& config, const std::optional<ResumeHead>& head) {
  if (head && BeganByPlan(*head)) return true;
  const bool begins = !head || head->progress.step == 0;
  return begins && config.dist().plan() == DistConfig::AUTO;
}

void TellThatNothingIsPlanned() {
  LogWarning("dist.plan: AUTO chooses at the first step only; this run continues as it began");
}

StatusOr<std::optional<LoadedConfig>> FollowPlan(const LoadedConfig& loaded,
                                                 const std::optional<ResumeHead>& head,
                                                 const TrainingData& data, bool equal_shares,
                                                 WorldSession* session) {
  TrainingWorld* const everyone = session->everyone();
  if (everyone->alone()) return head ? ContinueAlone(loaded, *head) : BeginAlone(loaded);
  const int ranks = everyone->size();
  const auto before = BeforePlan(loaded, ranks);
  const LoadedConfig& to_plan = before.ok() && *before ? **before : loaded;
  StatusOr<std::optional<Planned>> begun = std::optional<Planned>();
  if (everyone->leads()) begun = EarlierPlan(loaded, head, before, ranks);
  RT_ASSIGN_OR_RETURN(const Planned plan,
                      EarlierOrNewPlan(begun, to_plan, &data, equal_shares, everyone));
  if (plan.rank_size() == 0) return PlannedBy(DistConfig::CONFIG, loaded);
  RT_ASSIGN_OR_RETURN(LoadedConfig planned,
                      WithPlan(plan.world() == ranks ? to_plan : loaded, plan, ranks));
  planned.config.mutable_dist()->set_plan(DistConfig::AUTO);
  if (everyone->leads()) Print("plan: {}\n", Words(plan, ranks));
  const RankGroup group = TrainingRanks(plan, ranks);
  const bool divides =
      planned.config.dist().model_parallel().linear() != ModelParallelConfig::WHOLE;
  if (group.size() < ranks || divides) {
    RT_RETURN_IF_ERROR(session->TrainOnly(group, planned.config.dist()));
  }
  return std::optional(std::move(planned));
}

}  // namespace ringtail
