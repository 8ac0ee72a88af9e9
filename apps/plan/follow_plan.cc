#include "apps/plan/follow_plan.h"

#include "apps/plan/auto_plan.h"
#include "apps/print.h"
#include "core/logging.h"

namespace ringtail {
namespace {

// None: the run is to be planned. An empty plan: it has none, and continues without.
StatusOr<std::optional<Planned>> PlanOfRun(const LoadedConfig& loaded,
                                           const std::optional<ResumeHead>& head) {
  if (loaded.config.dist().has_planned()) return std::optional(loaded.config.dist().planned());
  if (!head) return std::optional<Planned>();
  RT_ASSIGN_OR_RETURN(const LoadedConfig begun, ParseRunConfig(head->config_text, head->path, {}));
  const DistConfig& dist = begun.config.dist();
  if (dist.has_planned()) return std::optional(dist.planned());
  if (head->progress.step == 0) return std::optional<Planned>();
  LogWarning("dist.plan: AUTO chooses at the first step only; this run continues as it began");
  return std::optional(Planned());
}

}  // namespace

StatusOr<std::optional<LoadedConfig>> FollowPlan(const LoadedConfig& loaded,
                                                 const std::optional<ResumeHead>& head,
                                                 const TrainingData& data, bool equal_shares,
                                                 WorldSession* session) {
  TrainingWorld* const everyone = session->everyone();
  std::optional<LoadedConfig> planned;
  if (loaded.config.dist().plan() != DistConfig::AUTO || everyone->alone()) return planned;
  StatusOr<std::optional<Planned>> begun = std::optional<Planned>();
  if (everyone->leads()) begun = PlanOfRun(loaded, head);
  RT_ASSIGN_OR_RETURN(const Planned plan,
                      EarlierOrNewPlan(begun, loaded, &data, equal_shares, everyone));
  if (plan.rank_size() == 0) return planned;
  RT_ASSIGN_OR_RETURN(planned, WithPlan(loaded, plan, everyone->size()));
  if (everyone->leads()) Print("plan: {}\n", Words(plan, everyone->size()));
  const RankGroup group = TrainingRanks(plan, everyone->size());
  const bool divides =
      planned->config.dist().model_parallel().linear() != ModelParallelConfig::WHOLE;
  if (group.size() < everyone->size() || divides) {
    RT_RETURN_IF_ERROR(session->TrainOnly(group, planned->config.dist()));
  }
  return planned;
}

}  // namespace ringtail
