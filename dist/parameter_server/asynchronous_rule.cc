#include "dist/parameter_server/asynchronous_rule.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/check.h"
#include "core/text/counted.h"

namespace ringtail {
namespace {

std::string DescribeAdmission(const Admission& admission) {
  std::string text = "no worker waits";
  if (admission.bound == 0) {
    text = "all wait for the slowest";
  } else if (admission.bound != Admission::kUnbounded) {
    text = fmt::format("at most {} ahead of the slowest", Counted(admission.bound, "step"));
  }
  if (admission.discard_after == 0) return text;
  return fmt::format("{}, nothing {} old or older", text,
                     Counted(admission.discard_after, "update"));
}

std::string DescribeGrouping(const Grouping& grouping) {
  std::string text;
  switch (grouping.by) {
    case Grouping::By::kPushes:
      text = grouping.pushes == 1 ? "every push is an update"
                                  : fmt::format("an update of {} pushes", grouping.pushes);
      break;
    case Grouping::By::kSplits:
      text = fmt::format("an update of 1/{} of the workers", grouping.splits);
      break;
    case Grouping::By::kAllWorkers:
      text = "an update of all workers";
      if (grouping.backups > 0) text += fmt::format(" but the {} slowest", grouping.backups);
      break;
  }
  if (grouping.gradients_per_push == 1) return text;
  return text + fmt::format(", {} each", Counted(grouping.gradients_per_push, "gradient"));
}

std::string DescribeWeight(const StalenessWeight& weight) {
  switch (weight.form) {
    case StalenessWeight::Form::kOne:
      return "weight 1";
    case StalenessWeight::Form::kInverse:
      return "weight 1 / tau";
    case StalenessWeight::Form::kInverseOfNext:
      return "weight 1 / (1 + tau)";
    case StalenessWeight::Form::kExponential:
      return fmt::format("weight exp(-{} tau)", weight.rate);
    case StalenessWeight::Form::kAdaDelay:
      return fmt::format("weight 1 / (1 + {} sqrt(t + tau))", weight.rate);
    case StalenessWeight::Form::kGapAware:
      return "weight by the gap of each element";
  }
  RT_CHECK(false, "a form of weight");
  return "";
}

std::string DescribeCompensation(const Compensation& compensation) {
  using Form = Compensation::Form;
  if (compensation.form == Form::kNone) return "";
  if (compensation.form == Form::kDana) {
    return fmt::format(", look-ahead with momentum {}", compensation.decay);
  }
  std::string text = fmt::format(", {} compensation {}",
                                 compensation.form == Form::kConstant ? "constant" : "adaptive",
                                 compensation.strength);
  if (compensation.limit > 0) text += fmt::format(" up to {}", compensation.limit);
  if (compensation.start_epoch > 0) text += fmt::format(" from epoch {}", compensation.start_epoch);
  return text;
}

}  // namespace

int Grouping::PushesPerUpdate(int workers) const {
  int number = pushes;
  if (by == By::kSplits) number = workers / splits;
  if (by == By::kAllWorkers) number = workers - backups;
  return std::max(1, number);
}

bool AsynchronousRule::synchronous() const {
  return admission.bound == 0 && grouping.by == Grouping::By::kAllWorkers && grouping.backups == 0;
}

bool AsynchronousRule::compares() const {
  return weight.form == StalenessWeight::Form::kGapAware ||
         compensation.form == Compensation::Form::kConstant ||
         compensation.form == Compensation::Form::kAdaptive;
}

std::string AsynchronousRule::Describe() const {
  return fmt::format("{}; {}; {}{}", DescribeAdmission(admission), DescribeGrouping(grouping),
                     DescribeWeight(weight), DescribeCompensation(compensation));
}

}  // namespace ringtail
