#include "dist/parameter_server/rule_choice.h"

#include "core/config/field_check.h"
#include "dist/parameter_server/presets.h"

namespace ringtail {
namespace {

using Config = AsynchronousConfig;
using WeightForm = StalenessWeight::Form;
using CompensationForm = Compensation::Form;

constexpr double kMostUpdates = 1'000'000, kMostWorkers = 1024, kMostGradients = 100'000;
constexpr double kMostVersions = 2048;

WeightForm FormOf(Config::Weight weight) {
  switch (weight) {
    case Config::ONE:
      return WeightForm::kOne;
    case Config::INVERSE:
      return WeightForm::kInverse;
    case Config::INVERSE_OF_NEXT:
      return WeightForm::kInverseOfNext;
    case Config::EXPONENTIAL:
      return WeightForm::kExponential;
    case Config::ADAPTIVE_DELAY:
      return WeightForm::kAdaDelay;
    case Config::GAP:
      return WeightForm::kGapAware;
  }
  return WeightForm::kOne;
}

// A field that is not set is in every range.
Status CheckRanges(const Config& config, const FieldCheck& check) {
  RT_RETURN_IF_ERROR(check.Between("bound", config.bound(), -1, kMostUpdates));
  RT_RETURN_IF_ERROR(check.Between("discard_after", config.discard_after(), 0, kMostUpdates));
  if (config.has_pushes()) {
    RT_RETURN_IF_ERROR(check.Between("pushes", config.pushes(), 1, kMostWorkers));
  }
  if (config.has_splits()) {
    RT_RETURN_IF_ERROR(check.Between("splits", config.splits(), 1, kMostWorkers));
  }
  RT_RETURN_IF_ERROR(check.Between("backups", config.backups(), 0, kMostWorkers - 1));
  if (config.has_gradients_per_push()) {
    RT_RETURN_IF_ERROR(
        check.Between("gradients_per_push", config.gradients_per_push(), 1, kMostGradients));
  }
  if (config.has_weight_rate()) {
    RT_RETURN_IF_ERROR(check.Positive("weight_rate", config.weight_rate()));
  }
  RT_RETURN_IF_ERROR(check.NotNegative("strength", config.strength()));
  RT_RETURN_IF_ERROR(check.NotNegative("limit", config.limit()));
  RT_RETURN_IF_ERROR(check.NotNegative("start_epoch", config.start_epoch()));
  RT_RETURN_IF_ERROR(check.FractionBelowOne("decay", config.decay()));
  RT_RETURN_IF_ERROR(check.Between("servers", config.servers(), 0, kMostWorkers));
  RT_RETURN_IF_ERROR(check.Between("replicas", config.replicas(), 0, 1));
  RT_RETURN_IF_ERROR(check.Between("key_versions", config.key_versions(), 1, kMostUpdates));
  return check.Between("versions", config.versions(), 1, kMostVersions);
}

void SetGrouping(const Config& config, Grouping* grouping) {
  if (config.has_pushes()) {
    grouping->by = Grouping::By::kPushes;
    grouping->pushes = config.pushes();
  }
  if (config.has_splits()) {
    grouping->by = Grouping::By::kSplits;
    grouping->splits = config.splits();
  }
  if (config.has_backups()) {
    grouping->by = Grouping::By::kAllWorkers;
    grouping->backups = config.backups();
  }
  if (config.has_gradients_per_push()) grouping->gradients_per_push = config.gradients_per_push();
}

void SetCompensation(const Config& config, Compensation* compensation) {
  if (config.has_strength()) compensation->strength = config.strength();
  if (config.has_limit()) compensation->limit = config.limit();
  if (config.has_start_epoch()) compensation->start_epoch = config.start_epoch();
  if (config.has_decay()) compensation->decay = config.decay();
}

// Fields that the rule has no use for would be silently ignored.
Status CheckUse(const Config& config, const AsynchronousRule& rule, const FieldCheck& check) {
  const CompensationForm form = rule.compensation.form;
  const bool delay = form == CompensationForm::kConstant || form == CompensationForm::kAdaptive;
  const std::string only = " is for rule: DC_CONSTANT and DC_ADAPTIVE; leave it out";
  if (config.has_strength() && !delay) return check.Error("strength", "strength" + only);
  if (config.has_limit() && !delay) return check.Error("limit", "limit" + only);
  if (config.has_start_epoch() && !delay) return check.Error("start_epoch", "start_epoch" + only);
  if (config.has_decay() && form != CompensationForm::kAdaptive &&
      form != CompensationForm::kDana) {
    return check.Error("decay", "decay is for rule: DC_ADAPTIVE and DANA; leave it out");
  }
  const bool rated =
      rule.weight.form == WeightForm::kExponential || rule.weight.form == WeightForm::kAdaDelay;
  if (rated == (rule.weight.rate > 0)) return OkStatus();
  return check.Error("weight_rate", rated ? "weight_rate: this weight needs k > 0"
                                          : "weight_rate is for weight: EXPONENTIAL and "
                                            "ADAPTIVE_DELAY; leave it out");
}

Status CheckPull(const Config& config, const FieldCheck& check) {
  if (!config.has_key_versions() || config.pull() == Config::DELTA) return OkStatus();
  return check.Error("key_versions", "key_versions is for pull: DELTA; leave it out");
}

Status CheckRule(const Config& config, const AsynchronousRule& rule, const FieldCheck& check) {
  if (config.has_pushes() + config.has_splits() + config.has_backups() > 1) {
    return check.Error("", "set only one of pushes, splits and backups: what makes one update");
  }
  if (rule.grouping.by == Grouping::By::kAllWorkers && rule.admission.bound != 0) {
    return check.Error("bound",
                       "bound: an update of all workers needs bound: 0, so that each is "
                       "in it once");
  }
  if (rule.grouping.backups > 0 && rule.admission.discard_after != 1) {
    return check.Error("discard_after",
                       "discard_after: with backup workers it must be 1, so that "
                       "late gradients are dropped");
  }
  if (config.rule() == Config::RINGMASTER && rule.admission.discard_after == 0) {
    return check.Error(
        "discard_after",
        "discard_after: RINGMASTER throws away gradients that are so many updates "
        "old; set it to at least 1, about the noise scale over the images of a push");
  }
  if (rule.weight.form == WeightForm::kGapAware &&
      rule.compensation.form != CompensationForm::kNone &&
      rule.compensation.form != CompensationForm::kDana) {
    return check.Error("weight",
                       "weight: GAP and delay compensation correct the same thing; choose "
                       "one");
  }
  return CheckUse(config, rule, check);
}

}  // namespace

bool UsesServers(const AsynchronousConfig& config) { return config.rule() != Config::NONE; }

AsynchronousRule RuleOf(const AsynchronousConfig& config) {
  AsynchronousRule rule =
      config.as_published() ? PublishedRule(config.rule()) : SafeRule(config.rule());
  if (config.has_bound()) {
    rule.admission.bound = config.bound() < 0 ? Admission::kUnbounded : config.bound();
  }
  if (config.has_discard_after()) rule.admission.discard_after = config.discard_after();
  SetGrouping(config, &rule.grouping);
  if (config.has_weight()) rule.weight.form = FormOf(config.weight());
  if (config.has_weight_rate()) rule.weight.rate = config.weight_rate();
  SetCompensation(config, &rule.compensation);
  return rule;
}

bool PullsAhead(const AsynchronousConfig& config) {
  return config.overlap() && RuleOf(config).grouping.by != Grouping::By::kAllWorkers;
}

Status ValidateAsynchronous(const AsynchronousConfig& config, const ConfigSource* source,
                            const std::string& path) {
  const FieldCheck check(source, path);
  RT_RETURN_IF_ERROR(CheckRanges(config, check));
  RT_RETURN_IF_ERROR(CheckPull(config, check));
  if (!UsesServers(config)) return OkStatus();
  return CheckRule(config, RuleOf(config), check);
}

}  // namespace ringtail
