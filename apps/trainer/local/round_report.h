// What is said of local rounds: their setting in words, and what a finished round was like.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_TRAINER_LOCAL_ROUND_REPORT_H_
#define RINGTAIL_APPS_TRAINER_LOCAL_ROUND_REPORT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "apps/trainer/local/local_period.h"
#include "apps/trainer/local/round_exchange.h"
#include "apps/trainer/training_plan.h"
#include "apps/trainer/update/own_step.h"
#include "core/storage/metrics.h"
#include "dist/dist.pb.h"
#include "optim/outer_optimizer.h"

namespace ringtail {

OuterRule RuleOf(const LocalConfig& config);

// Whether there are rounds where the config has them. Not on one rank that takes means: its steps are
// those of a run alone.
bool MakesRounds(const LocalConfig& config, bool alone);

// When a run stops that a signal tells to: "after this step", "at the end of this round". A round that
// travels during the next one tells the others of the signal no sooner: "at the end of the next round".
std::string WhenItStops(const DistConfig& config, bool alone);

// A sentence if rounds are longer than the steps between two evaluations or two checkpoints, which then
// come less often than the config says; empty: they are not, or the period is not fixed.
std::string WarnOfLongRounds(const RunConfig& config, const TrainingPlan& plan, bool alone);

// "local rounds: 8 steps between exchanges, which travel during the next round; outer rate 0.7,
// momentum 0.6". `steps`: of the first round. `overlapped`: whether they travel; alone they do not.
std::string DescribeRounds(const LocalConfig& config, int64_t steps, bool overlapped);

// What several ranks had of their own is not in the checkpoint that a run continues from.
void WarnOfLostParts();

// Of the slowest rank and the longest exchange; without a cosine.
LocalPeriod::Reading ReadingOf(std::span<const RankRound> ranks);

// Says how `now` differs from `before`, after `step` steps, and by what it was decided; nothing if
// it does not.
void LogPeriod(const PeriodProgress& before, const PeriodProgress& now,
               const LocalPeriod::Reading& decided_by, int64_t step);

// That of what the ranks have changed (mean_cosine.h); `squares_of_sum`: |sum c_i D_i|^2.
std::optional<double> MeanCosine(std::span<const RankRound> ranks, double squares_of_sum);

// All ranks, if any has left out a step. What the lowest of those says, `own` on this rank: "rank 2
// (node7): the gradient of 'fc.weight' has a NaN"; never empty, also if it was before a resume.
StatusOr<std::string> FirstNotFinite(TrainingWorld* world, std::span<const RankRound> ranks,
                                     const std::string& own);

// Loss, accuracy, images and times of a step of this rank's own.
Metrics MetricsOfStep(const OwnStep& own);

// Loss, accuracy, images and speed of all ranks together, in a round that took `seconds` (kNoMetric:
// not known), and what this rank has exchanged.
Metrics MetricsOfRound(std::span<const RankRound> ranks, double seconds,
                       const RoundExchange& exchange);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_LOCAL_ROUND_REPORT_H_
