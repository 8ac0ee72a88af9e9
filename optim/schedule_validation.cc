#include "optim/schedule_validation.h"

#include <fmt/format.h>

#include "core/config/field_check.h"
#include "optim/batch_growth.h"
#include "optim/batch_scaling.h"

namespace ringtail {
namespace {

Status ValidateWarmup(const WarmupConfig& warmup, const ConfigSource* source) {
  const FieldCheck check(source, "optim.warmup");
  RT_RETURN_IF_ERROR(check.NotNegative("epochs", warmup.epochs()));
  return check.Fraction("start_fraction", warmup.start_fraction());
}

Status ValidateStep(const StepSchedule& schedule, const ConfigSource* source) {
  const FieldCheck check(source, "optim.step");
  RT_RETURN_IF_ERROR(check.Positive("every_epochs", schedule.every_epochs()));
  return check.Positive("gamma", schedule.gamma());
}

Status ValidateMultiStep(const MultiStepSchedule& schedule, const ConfigSource* source) {
  const FieldCheck check(source, "optim.multi_step");
  RT_RETURN_IF_ERROR(check.Positive("gamma", schedule.gamma()));
  if (schedule.at_epochs_size() == 0) {
    return check.Error("at_epochs", "multi_step has no marks; set at_epochs or use constant");
  }
  for (int i = 0; i < schedule.at_epochs_size(); ++i) {
    const std::string field = fmt::format("at_epochs[{}]", i);
    RT_RETURN_IF_ERROR(check.NotNegative(field, schedule.at_epochs(i)));
    if (i > 0 && schedule.at_epochs(i) <= schedule.at_epochs(i - 1)) {
      return check.Error(field,
                         fmt::format("{} is {}; it must be greater than the mark before, {}", field,
                                     schedule.at_epochs(i), schedule.at_epochs(i - 1)));
    }
  }
  return OkStatus();
}

Status ValidatePolynomial(const PolynomialSchedule& schedule, const ConfigSource* source) {
  const FieldCheck check(source, "optim.polynomial");
  RT_RETURN_IF_ERROR(check.Positive("power", schedule.power()));
  return check.Fraction("end_fraction", schedule.end_fraction());
}

Status ValidateOneCycle(const OneCycleSchedule& schedule, const ConfigSource* source) {
  const FieldCheck check(source, "optim.one_cycle");
  RT_RETURN_IF_ERROR(check.FractionBelowOne("rise_fraction", schedule.rise_fraction()));
  RT_RETURN_IF_ERROR(check.Fraction("start_fraction", schedule.start_fraction()));
  return check.Fraction("end_fraction", schedule.end_fraction());
}

}  // namespace

Status ValidateSchedule(const OptimConfig& config, const ConfigSource* source) {
  RT_RETURN_IF_ERROR(FieldCheck(source, "optim").Positive("learning_rate", config.learning_rate()));
  RT_RETURN_IF_ERROR(ValidateWarmup(config.warmup(), source));
  RT_RETURN_IF_ERROR(ValidateBatchScaling(config, source));
  RT_RETURN_IF_ERROR(ValidateBatchGrowth(config, source));
  switch (config.schedule_case()) {
    case OptimConfig::kConstant:
      return OkStatus();
    case OptimConfig::kStep:
      return ValidateStep(config.step(), source);
    case OptimConfig::kMultiStep:
      return ValidateMultiStep(config.multi_step(), source);
    case OptimConfig::kPolynomial:
      return ValidatePolynomial(config.polynomial(), source);
    case OptimConfig::kOneCycle:
      return ValidateOneCycle(config.one_cycle(), source);
    case OptimConfig::kCosine:
    case OptimConfig::SCHEDULE_NOT_SET:
      break;
  }
  return FieldCheck(source, "optim.cosine")
      .Fraction("end_fraction", config.cosine().end_fraction());
}

}  // namespace ringtail
