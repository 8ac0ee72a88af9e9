#include "apps/trainer/local/round_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "apps/trainer/local/mean_cosine.h"
#include "core/logging.h"
#include "core/text/counted.h"
#include "core/units.h"
#include "dist/config_check.h"

namespace ringtail {
namespace {

// Of a fixed period, which some round has, unless phases or the run are shorter.
int64_t LongestRound(const RunConfig& config, const TrainingPlan& plan) {
  const LocalConfig& local = config.dist().local();
  const LocalPeriod period(local, config.optim(), &plan);
  int64_t longest = 0;
  for (int64_t begin = period.first_step();
       begin < plan.total_steps() && longest < local.period();) {
    const int64_t end = period.RoundEnd(begin);
    longest = std::max(longest, end - begin);
    begin = end;
  }
  return longest;
}

// The fewest, which are those of the largest batch.
int64_t StepsToNextEvaluation(const TrainingPlan& plan) {
  return std::max<int64_t>(1, plan.evaluation_batches() / plan.stages().back().batches);
}

}  // namespace

OuterRule RuleOf(const LocalConfig& config) {
  return {.form = config.outer_form() == LocalConfig::SLOW_MOMENTUM ? OuterRule::Form::kSlowMomentum
                                                                    : OuterRule::Form::kNesterov,
          .learning_rate = config.outer_learning_rate(),
          .momentum = config.outer_momentum()};
}

bool MakesRounds(const LocalConfig& config, bool alone) {
  return !alone || !RuleOf(config).averages();
}

std::string WhenItStops(const DistConfig& config, bool alone) {
  const LocalConfig& local = config.local();
  if (!UsesLocalRounds(config) || !MakesRounds(local, alone)) return "after this step";
  std::string round =
      fmt::format("at the end of {} round", local.overlap() && !alone ? "the next" : "this");
  if (local.start_epoch() == 0) return round;
  return fmt::format("after this step, from epoch {} on {}", local.start_epoch(), round);
}

std::string WarnOfLongRounds(const RunConfig& config, const TrainingPlan& plan, bool alone) {
  const LocalConfig& local = config.dist().local();
  const bool fixed = UsesLocalRounds(config.dist()) && local.period_rule() == LocalConfig::FIXED;
  if (!fixed || !MakesRounds(local, alone)) return "";
  const int64_t longest = LongestRound(config, plan);
  std::string passed;
  const auto compare = [&](int64_t steps, const char* what, const char* field) {
    if (steps == 0 || longest <= steps) return;
    passed += fmt::format("{}the {} from one {} to the next ({})", passed.empty() ? "" : " and ",
                          steps, what, field);
  };
  compare(StepsToNextEvaluation(plan), "evaluation", "train.evaluate_every_epochs");
  compare(config.train().checkpoint_every_steps(), "checkpoint", "train.checkpoint_every_steps");
  if (passed.empty()) return "";
  return fmt::format(
      "rounds have up to {} (dist.local.period), more than {}: evaluations, checkpoints and stops "
      "come at ends of rounds only; if that is too late, set dist.local.period lower",
      Counted(longest, "step"), passed);
}

std::string DescribeRounds(const LocalConfig& config, int64_t steps, bool overlapped) {
  const OuterRule rule = RuleOf(config);
  const std::string outer = rule.averages() ? "the mean of the ranks' weights"
                                            : fmt::format("outer rate {}, momentum {}",
                                                          rule.learning_rate, rule.momentum);
  return fmt::format("local rounds: {} between exchanges{}{}; {}", Counted(steps, "step"),
                     config.period_rule() == LocalConfig::FIXED ? "" : " at first",
                     overlapped ? ", which travel during the next round" : "", outer);
}

void WarnOfLostParts() {
  LogWarning(
      "the checkpoint has only what the ranks have in common: the optimizer state of rank 0 is "
      "that of all, and what they had changed since their last exchange is lost");
}

LocalPeriod::Reading ReadingOf(std::span<const RankRound> ranks) {
  LocalPeriod::Reading reading;
  for (const RankRound& rank : ranks) {
    reading.step_seconds = std::max(reading.step_seconds, rank.step_seconds);
    reading.exchange_seconds = std::max(reading.exchange_seconds, rank.exchange_seconds);
  }
  return reading;
}

std::optional<double> MeanCosine(std::span<const RankRound> ranks, double squares_of_sum) {
  DifferenceNorms all;
  for (const RankRound& rank : ranks) all.Add(rank.weight, rank.squares);
  return MeanCosine(all, squares_of_sum);
}

void LogPeriod(const PeriodProgress& before, const PeriodProgress& now,
               const LocalPeriod::Reading& decided_by, int64_t step) {
  if (now.longest != before.longest) {
    LogWarning(fmt::format(
        "step {}: what the ranks change in a round points in different directions (mean cosine "
        "{:.3f}): at most {} between exchanges from now on",
        step, decided_by.cosine.value_or(kNoMetric), Counted(now.longest, "step")));
  }
  if (now.measured != before.measured) {
    LogInfo(
        fmt::format("step {}: {} between exchanges from now on: an exchange takes {:.0f} ms, a "
                    "step {:.1f} ms",
                    step, Counted(now.measured, "step"), decided_by.exchange_seconds * 1e3,
                    decided_by.step_seconds * 1e3));
  }
}

StatusOr<std::string> FirstNotFinite(TrainingWorld* world, std::span<const RankRound> ranks,
                                     const std::string& own) {
  RT_ASSIGN_OR_RETURN(const std::vector<std::string> texts, world->GatherText(own));
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    if (ranks[rank].left_out == 0 || texts[rank].empty()) continue;
    if (world->alone()) return texts[rank];
    return fmt::format("{}: {}", world->Describe(static_cast<int>(rank)), texts[rank]);
  }
  // A checkpoint has the number of steps that were left out, but not why.
  return std::string("a loss or gradient was not finite before the run was resumed");
}

Metrics MetricsOfStep(const OwnStep& own) {
  const double images = static_cast<double>(std::max<int64_t>(own.loss.count, 1));
  Metrics metrics;
  metrics.loss = own.loss.loss_sum / images;
  metrics.accuracy = static_cast<double>(own.loss.correct) / images;
  metrics.batch = own.loss.count;
  metrics.own = {.batch = own.loss.count,
                 .data_wait_ms = own.wait_seconds * kMsPerSecond,
                 .forward_ms = own.times.forward_seconds * kMsPerSecond,
                 .backward_ms = own.times.backward_seconds * kMsPerSecond,
                 .exposed_comm_ms = 0,
                 .hidden_comm_ms = 0};
  return metrics;
}

Metrics MetricsOfRound(std::span<const RankRound> ranks, double seconds,
                       const RoundExchange& exchange) {
  double loss = 0, correct = 0, images = 0;
  for (const RankRound& rank : ranks) {
    loss += rank.loss;
    correct += rank.correct;
    images += rank.images;
  }
  Metrics metrics;
  metrics.kind = Metrics::Kind::kRound;
  metrics.loss = loss / std::max(images, 1.0);
  metrics.accuracy = correct / std::max(images, 1.0);
  metrics.batch = static_cast<int64_t>(images);
  metrics.images_per_s = images / seconds;
  metrics.step_ms = seconds * kMsPerSecond;
  const ExchangeTimes times = exchange.times();
  metrics.own.exposed_comm_ms = times.exposed_seconds * kMsPerSecond;
  metrics.own.hidden_comm_ms = times.hidden_seconds() * kMsPerSecond;
  metrics.own.comm_bytes = exchange.sent_bytes();
  return metrics;
}

}  // namespace ringtail
