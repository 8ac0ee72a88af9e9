#include "apps/trainer/local/local_period.h"

#include <algorithm>
#include <cmath>

#include "optim/batch_growth.h"

namespace ringtail {
namespace {

constexpr double kMostSteps = 1e6;  // of a round: beyond any run's epoch
// Of the time of rounds that do not overlap, the part that the exchange may take.
constexpr double kExchangeShare = 0.1;

int64_t FirstLocalStep(const LocalConfig& config, const TrainingPlan& plan) {
  int64_t step = 0;
  while (step < plan.total_steps() && plan.EpochAt(step) < config.start_epoch()) ++step;
  return step;
}

template <typename Field>
double Median(const std::vector<LocalPeriod::Reading>& readings, const Field& field) {
  std::vector<double> values;
  values.reserve(readings.size());
  for (const LocalPeriod::Reading& reading : readings) values.push_back(reading.*field);
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

LocalPeriod::LocalPeriod(const LocalConfig& config, const OptimConfig& optim,
                         const TrainingPlan* plan)
    : config_(config), optim_(optim), plan_(plan), first_step_(FirstLocalStep(config, *plan)) {
  progress_.measured = std::min(kFirstAuto, MostMeasured());
}

int64_t LocalPeriod::MostMeasured() const {
  return config_.period() > 0 ? config_.period() : kMostAuto;
}

int64_t LocalPeriod::StepsFrom(int64_t begin) const {
  int64_t steps = config_.period();
  if (config_.period_rule() == LocalConfig::AUTO) {
    steps = std::min(progress_.measured, MostMeasured());  // of a resumed run `period` may be less
  } else if (config_.period_rule() == LocalConfig::QUADRATIC) {
    const auto rate = [&](int64_t step) {
      return GrownRate(optim_, plan_->growth_run(), plan_->BatchesBefore(step),
                       plan_->BatchesOf(step));
    };
    if (rate(begin + 1) <= rate(begin)) {
      const double ratio = config_.quadratic_alpha() / std::max(rate(begin), 1e-30);
      steps = std::max(steps, static_cast<int64_t>(std::min(ratio * ratio, kMostSteps)));
    }
  }
  if (progress_.longest > 0) steps = std::min(steps, progress_.longest);
  return std::max<int64_t>(steps, 1);
}

bool LocalPeriod::IsCut(int64_t begin, int64_t step) const {
  return step >= plan_->total_steps() || plan_->BatchesOf(step) != plan_->BatchesOf(begin) ||
         plan_->PhaseAt(step).image_size != plan_->PhaseAt(begin).image_size;
}

int64_t LocalPeriod::RoundEnd(int64_t begin) const {
  const int64_t most = begin + StepsFrom(begin);
  int64_t end = begin + 1;
  while (end < most && !IsCut(begin, end)) ++end;
  return end;
}

void LocalPeriod::AfterRound(int64_t begin, const Reading& reading) {
  if (reading.cosine) Watch(begin, *reading.cosine);
  if (config_.period_rule() == LocalConfig::AUTO) Measure(begin, reading);
}

void LocalPeriod::Watch(int64_t begin, double cosine) {
  ++progress_.watched;
  progress_.cosines += cosine;
  progress_.squares += cosine * cosine;
  if (progress_.watched < kWatched) return;
  constexpr auto kCount = static_cast<double>(kWatched);
  const double mean = progress_.cosines / kCount;
  const double variance = std::max(progress_.squares - kCount * mean * mean, 0.0) / (kCount - 1);
  // Below by more than chance: by two standard errors.
  if (mean + 2 * std::sqrt(variance / kCount) < config_.min_cosine()) {
    decided_by_.cosine = mean;
    progress_.longest = std::max<int64_t>(StepsFrom(begin) / 2, 1);
  }
  progress_.watched = 0;
  progress_.cosines = progress_.squares = 0;
}

void LocalPeriod::Measure(int64_t begin, const Reading& reading) {
  const int64_t size = plan_->PhaseAt(begin).image_size;
  if (size == progress_.measured_size) return;
  if (size != readings_size_) readings_.clear();
  readings_size_ = size;
  if (reading.exchange_seconds <= 0) return;
  readings_.push_back(reading);
  if (readings_.size() < kReadings) return;
  const double exchange = Median(readings_, &Reading::exchange_seconds);
  const double step = std::max(Median(readings_, &Reading::step_seconds), 1e-9);
  decided_by_.exchange_seconds = exchange;
  decided_by_.step_seconds = step;
  const double hidden = config_.overlap() ? 1 : (1 - kExchangeShare) / kExchangeShare;
  progress_.measured = std::clamp<int64_t>(
      static_cast<int64_t>(std::ceil(std::min(hidden * exchange / step, kMostSteps))), 1,
      MostMeasured());
  progress_.measured_size = size;
}

}  // namespace ringtail
