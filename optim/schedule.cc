#include "optim/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/text/counted.h"

namespace ringtail {
namespace {

// A step on a mark has passed it, even if step / steps_per_epoch is a rounding error below.
constexpr double kMarkSlack = 1e-9;

// The position of a step in the run; names as in optim.proto.
struct Place {
  double epoch;     // t
  double fraction;  // u
};

Place PlaceOf(const OptimConfig& config, int64_t step, int64_t total_steps,
              double steps_per_epoch) {
  const double epoch = static_cast<double>(step) / steps_per_epoch;
  const double epochs = static_cast<double>(total_steps) / steps_per_epoch;
  const double after = epochs - config.warmup().epochs();
  // A run that ends within its warm-up stays at u = 0.
  const double u = after > 0 ? (epoch - config.warmup().epochs()) / after : 0;
  return {epoch, std::clamp(u, 0.0, 1.0)};
}

double WarmupFactor(const WarmupConfig& warmup, double epoch) {
  if (epoch >= warmup.epochs()) return 1;
  return warmup.start_fraction() + (1 - warmup.start_fraction()) * epoch / warmup.epochs();
}

// From `from` at x = 0 to `to` at x = 1 along half a cosine.
double HalfCosine(double from, double to, double x) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * x)) / 2;
}

double OneCycleFactor(const OneCycleSchedule& cycle, double u) {
  const double rise = cycle.rise_fraction();
  if (u < rise) return HalfCosine(cycle.start_fraction(), 1, u / rise);
  return HalfCosine(1, cycle.end_fraction(), (u - rise) / (1 - rise));
}

int64_t MarksPassed(const MultiStepSchedule& schedule, double epoch) {
  const auto& marks = schedule.at_epochs();
  return std::count_if(marks.begin(), marks.end(),
                       [&](double mark) { return epoch >= mark - kMarkSlack; });
}

// The schedule's rate as a fraction of learning_rate.
double ScheduleFactor(const OptimConfig& config, Place place) {
  switch (config.schedule_case()) {
    case OptimConfig::kConstant:
      return 1;
    case OptimConfig::kStep:
      return std::pow(config.step().gamma(),
                      std::floor(place.epoch / config.step().every_epochs() + kMarkSlack));
    case OptimConfig::kMultiStep:
      return std::pow(config.multi_step().gamma(), MarksPassed(config.multi_step(), place.epoch));
    case OptimConfig::kPolynomial: {
      const double end = config.polynomial().end_fraction();
      return end + (1 - end) * std::pow(1 - place.fraction, config.polynomial().power());
    }
    case OptimConfig::kOneCycle:
      return OneCycleFactor(config.one_cycle(), place.fraction);
    case OptimConfig::kCosine:
    case OptimConfig::SCHEDULE_NOT_SET:
      break;
  }
  return HalfCosine(1, config.cosine().end_fraction(), place.fraction);
}

}  // namespace

double LearningRate(const OptimConfig& config, int64_t step, int64_t total_steps,
                    double steps_per_epoch) {
  const Place place = PlaceOf(config, step, total_steps, steps_per_epoch);
  return config.learning_rate() * WarmupFactor(config.warmup(), place.epoch) *
         ScheduleFactor(config, place);
}

double RateReduction(const OptimConfig& config, int64_t step, int64_t total_steps,
                     double steps_per_epoch) {
  const Place place = PlaceOf(config, step, total_steps, steps_per_epoch);
  // Only one cycle rises first; the other schedules start at 1 and are monotonic.
  const bool rises = config.has_one_cycle() && place.fraction < config.one_cycle().rise_fraction();
  return rises ? 1 : std::max(1.0, 1 / ScheduleFactor(config, place));
}

std::string DescribeSchedule(const OptimConfig& config) {
  std::string text;
  switch (config.schedule_case()) {
    case OptimConfig::kConstant:
      text = fmt::format("constant {:.6g}", config.learning_rate());
      break;
    case OptimConfig::kStep:
      text = fmt::format("{:.6g} times {} every {} epochs", config.learning_rate(),
                         config.step().gamma(), config.step().every_epochs());
      break;
    case OptimConfig::kMultiStep:
      text = fmt::format("{:.6g} times {} at epochs {}", config.learning_rate(),
                         config.multi_step().gamma(),
                         fmt::join(config.multi_step().at_epochs(), ", "));
      break;
    case OptimConfig::kPolynomial:
      text = fmt::format("polynomial of power {} from {:.6g}", config.polynomial().power(),
                         config.learning_rate());
      break;
    case OptimConfig::kOneCycle:
      text = fmt::format("one cycle up to {:.6g}", config.learning_rate());
      break;
    case OptimConfig::kCosine:
    case OptimConfig::SCHEDULE_NOT_SET:
      text = fmt::format("cosine from {:.6g}", config.learning_rate());
      break;
  }
  if (config.warmup().epochs() > 0) {
    text += fmt::format(" after {} of warm-up", Counted(config.warmup().epochs(), "epoch"));
  }
  return text;
}

}  // namespace ringtail
