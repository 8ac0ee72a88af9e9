#include "dist/parameter_server/presets.h"

#include "core/check.h"

namespace ringtail {
namespace {

using Config = AsynchronousConfig;
using WeightForm = StalenessWeight::Form;
using CompensationForm = Compensation::Form;

constexpr double kSafeLimit = 1, kSafeStartEpoch = 1;

}  // namespace

AsynchronousRule PublishedRule(Config::Rule rule) {
  switch (rule) {
    case Config::NONE:
      break;
    case Config::SYNCHRONOUS:
      return {.admission = {.bound = 0}, .grouping = {.by = Grouping::By::kAllWorkers}};
    case Config::ASYNCHRONOUS:
    case Config::RINGMASTER:
      return {};
    case Config::SOFT_SYNC:
      return {.grouping = {.by = Grouping::By::kSplits}, .weight = {.form = WeightForm::kInverse}};
    case Config::STALE_SYNC:
      return {.admission = {.bound = 3}};
    case Config::ADA_DELAY:
      return {.weight = {.form = WeightForm::kAdaDelay}};
    case Config::DC_CONSTANT:
      return {.compensation = {.form = CompensationForm::kConstant, .strength = 0.04}};
    case Config::DC_ADAPTIVE:
      return {.compensation = {.form = CompensationForm::kAdaptive, .strength = 2, .decay = 0.95}};
    case Config::GAP_AWARE:
      return {.weight = {.form = WeightForm::kGapAware}};
    case Config::DANA:
      return {.compensation = {.form = CompensationForm::kDana, .decay = 0.9}};
    case Config::BACKUP_WORKERS:
      return {.admission = {.bound = 0, .discard_after = 1},
              .grouping = {.by = Grouping::By::kAllWorkers, .backups = 1}};
  }
  RT_CHECK(false, "a rule with servers");
  return {};
}

AsynchronousRule SafeRule(Config::Rule rule) {
  AsynchronousRule safe = PublishedRule(rule);
  if (rule == Config::ASYNCHRONOUS || rule == Config::STALE_SYNC || rule == Config::RINGMASTER) {
    safe.weight.form = WeightForm::kInverse;
  }
  if (rule == Config::DC_CONSTANT || rule == Config::DC_ADAPTIVE) {
    safe.compensation.limit = kSafeLimit;
    safe.compensation.start_epoch = kSafeStartEpoch;
  }
  return safe;
}

}  // namespace ringtail
