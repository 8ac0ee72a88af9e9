#include "apps/trainer/checkpoint/config_difference.h"

#include <fmt/core.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/message_differencer.h>

#include <initializer_list>
#include <string>

#include "apps/config/run_precision.h"
#include "core/check.h"
#include "core/config/written_defaults.h"
#include "optim/batch_scaling.h"

namespace ringtail {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::util::MessageDifferencer;

void Ignore(const Descriptor* message, std::initializer_list<const char*> fields,
            MessageDifferencer* differencer) {
  for (const char* name : fields) {
    const auto* field = message->FindFieldByName(name);
    RT_CHECK(field != nullptr, name);
    differencer->IgnoreField(field);
  }
}

RunConfig WithDefaults(RunConfig config) {
  OptimConfig* const optim = config.mutable_optim();
  if (optim->rule_case() == OptimConfig::RULE_NOT_SET) optim->mutable_sgd();
  if (optim->schedule_case() == OptimConfig::SCHEDULE_NOT_SET) optim->mutable_cosine();
  WriteOutDefaults(&config);
  return config;
}

// With these schedules the learning rate of a step does not depend on when the run ends; what it
// has of the length of the run is that of its beginning.
bool EndIsOpen(const OptimConfig& config) {
  return config.has_constant() || config.has_step() || config.has_multi_step();
}

// "modified: train.batch: 64 -> 32\n..." on one line.
std::string OneLine(std::string report) {
  while (!report.empty() && report.back() == '\n') report.pop_back();
  for (size_t at = 0; (at = report.find('\n', at)) != std::string::npos;) {
    report.replace(at, 1, "; ");
  }
  return report;
}

// With the precision that was taken in place of how it was found.
RunConfig WithTakenPrecision(RunConfig config) {
  TrainConfig* const train = config.mutable_train();
  if (!PrecisionIsOpen(*train)) train->set_precision(PrecisionOf(*train));
  train->clear_measured_precision();
  return config;
}

// That the rate is for.
double EpochsOfRate(const RunConfig& config) {
  const double begun = config.optim().batch_scaling().begun_epochs();
  return begun > 0 ? begun : config.train().epochs();
}

// Says of weights and epochs what the rate depends on: whether there are any, and how many.
RunConfig WithRateOfBeginning(RunConfig config, const RunConfig& other) {
  const bool follows = RateFollowsLength(config.optim());
  const bool both = !config.train().weights().empty() && !other.train().weights().empty();
  if (!follows || both) config.mutable_train()->clear_weights();
  if (follows) {
    config.mutable_optim()->mutable_batch_scaling()->set_begun_epochs(EpochsOfRate(config));
  } else if (config.optim().has_batch_scaling()) {
    config.mutable_optim()->mutable_batch_scaling()->clear_begun_epochs();
  }
  return config;
}

// Says where `other` does that the rate is for train.batch, as it is unless another is stated.
RunConfig WithReferenceBatch(RunConfig config, const RunConfig& other) {
  if (other.optim().batch_scaling().reference_batch() == 0) return config;
  BatchScalingConfig* const scaling = config.mutable_optim()->mutable_batch_scaling();
  if (scaling->reference_batch() == 0) scaling->set_reference_batch(config.train().batch());
  return config;
}

}  // namespace

void KeepBeginning(const RunConfig& saved, RunConfig* now) {
  TrainConfig* const train = now->mutable_train();
  KeepPrecision(saved.train(), train);
  train->clear_weights();
  if (saved.train().has_weights()) train->set_weights(saved.train().weights());
  const double begun = EpochsOfRate(saved);
  const bool stated = now->optim().batch_scaling().begun_epochs() > 0;
  if (!RateFollowsLength(now->optim()) || stated || train->epochs() == begun) return;
  now->mutable_optim()->mutable_batch_scaling()->set_begun_epochs(begun);
}

Status CheckResumable(const RunConfig& saved, const RunConfig& now) {
  MessageDifferencer differencer;
  Ignore(DataConfig::descriptor(), {"path", "layout", "workers", "prefetch_batches", "cache_mib"},
         &differencer);
  Ignore(TrainConfig::descriptor(),
         {"threads", "evaluation_batch", "evaluate_every_epochs", "evaluate_flipped",
          "evaluation_image_size", "evaluation_image_scale", "until_accuracy",
          "checkpoint_every_steps", "keep_checkpoints", "on_nan", "log_every_steps", "patience"},
         &differencer);
  // How ranks work together may change, as their number may; what they compute may not. A run keeps
  // its plan, or has none, whatever `plan` says by now (apps/plan/follow_plan.h).
  Ignore(
      DistConfig::descriptor(),
      {"plan", "algorithm", "bucket_kib", "end_bucket_kib", "check_every_steps", "on_disagreement",
       "transport", "shared_memory", "join_timeout_s", "hang_timeout_s", "model_parallel"},
      &differencer);
  if (EndIsOpen(now.optim())) Ignore(TrainConfig::descriptor(), {"epochs"}, &differencer);
  std::string report;
  differencer.ReportDifferencesToString(&report);
  differencer.set_report_ignores(false);
  const auto comparable = [](const RunConfig& config, const RunConfig& other) {
    return WithDefaults(
        WithRateOfBeginning(WithReferenceBatch(WithTakenPrecision(config), other), other));
  };
  if (differencer.Compare(comparable(saved, now), comparable(now, saved))) {
    return OkStatus();
  }
  return FailedPrecondition(fmt::format(
      "the config is not the one that the run began with ({}); change it back, or begin a new run "
      "with another --output (with the weights of this one: --weights and its folder)",
      OneLine(report)));
}

}  // namespace ringtail
