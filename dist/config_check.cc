#include "dist/config_check.h"

#include <fmt/core.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <functional>

#include "core/config/field_check.h"
#include "core/text/counted.h"
#include "dist/compression/scheme_choice.h"
#include "dist/parameter_server/rule_choice.h"

namespace ringtail {
namespace {

constexpr double kLargestBucketKib = 1 << 20;  // 1 GiB
constexpr double kShortestS = 0.1, kLongestS = 86'400;

constexpr double kLongestPeriod = 100'000;
constexpr double kMostPieces = 64, kMostStages = 64;

// dist.compression is for gradients: in rounds there are none that travel, and no momentum that DGC
// keeps of them in place of the optimizer.
Status ValidateGradientsBesideRounds(const DistConfig& dist, const ConfigSource* source) {
  const FieldCheck check(source, "dist");
  if (FindDgc(dist.compression()) != nullptr) {
    return check.Error("compression",
                       "dgc keeps the momentum of gradients, and rounds (dist.local) would train "
                       "without any: take top_k, or leave out dist.local");
  }
  if (dist.local().start_epoch() > 0) return OkStatus();
  if (CompressesAnything(dist.compression())) {
    return check.Error("compression",
                       "in rounds (dist.local) no gradient travels: set dist.local.compression, "
                       "for what ranks exchange after a round, in place of dist.compression");
  }
  if (dist.compression().statistics_every_steps() == 1) return OkStatus();
  return check.Within("compression")
      .Error("statistics_every_steps",
             "in rounds (dist.local) running statistics travel at the end of each: leave "
             "statistics_every_steps out");
}

// The first field that is not at its default; null: all are.
const google::protobuf::FieldDescriptor* FirstSetField(const LocalConfig& config) {
  using google::protobuf::util::MessageDifferencer;
  const auto* const message = LocalConfig::descriptor();
  for (int i = 0; i < message->field_count(); ++i) {
    LocalConfig without = config;
    LocalConfig::GetReflection()->ClearField(&without, message->field(i));
    // Equivalent takes a scheme without settings for none.
    const bool codes =
        CompressesAnything(config.compression()) != CompressesAnything(without.compression());
    if (codes || !MessageDifferencer::Equivalent(config, without)) return message->field(i);
  }
  return nullptr;
}

// Nothing would read them, and the run would not say so.
Status RefuseFieldsOfRounds(const LocalConfig& config, const FieldCheck& check) {
  const auto* const field = FirstSetField(config);
  if (field == nullptr) return OkStatus();
  return check.Error(
      field->name(),
      fmt::format("{} is for rounds, and there are none: set dist.local.period, the steps of a "
                  "round, or dist.local.period_rule to AUTO; without them ranks exchange gradients "
                  "in every step, and all of dist.local is left out (--set dist.local={{}})",
                  field->name()));
}

Status ValidatePeriod(const LocalConfig& config, const FieldCheck& check) {
  RT_RETURN_IF_ERROR(check.Between("period", config.period(), 0, kLongestPeriod));
  RT_RETURN_IF_ERROR(check.NotNegative("quadratic_alpha", config.quadratic_alpha()));
  if (config.period_rule() != LocalConfig::QUADRATIC) {
    if (config.quadratic_alpha() == 0) return OkStatus();
    return check.Error("quadratic_alpha",
                       "quadratic_alpha is for one rule: set dist.local.period_rule to QUADRATIC, "
                       "or leave quadratic_alpha out");
  }
  if (config.quadratic_alpha() == 0) {
    return check.Error("quadratic_alpha", "period_rule: QUADRATIC needs quadratic_alpha > 0");
  }
  // Without one the run would exchange gradients in every step.
  if (config.period() > 0) return OkStatus();
  return check.Error("period", "period_rule: QUADRATIC needs period >= 1, the fewest steps");
}

// DGC keeps the momentum of gradients; differences of weights have it already.
Status ValidateDifferences(const LocalConfig& config, const FieldCheck& check,
                           const ConfigSource* source) {
  RT_RETURN_IF_ERROR(ValidateCompression(config.compression(), source, "dist.local.compression"));
  if (FindDgc(config.compression()) != nullptr) {
    return check.Error("compression",
                       "dgc is for gradients; take top_k for what ranks exchange after a round");
  }
  if (config.compression().statistics_every_steps() != 1) {
    return check.Within("compression")
        .Error("statistics_every_steps",
               "statistics_every_steps is for gradients (dist.compression), and running statistics "
               "travel at the end of each round: leave it out");
  }
  if (!config.has_min_cosine() || !CompressesAnything(config.compression())) return OkStatus();
  return check.Error("min_cosine",
                     "min_cosine: how far ranks drift apart is not known of what travels through "
                     "codecs; leave it out, or dist.local.compression");
}

Status ValidateLocal(const DistConfig& dist, const ConfigSource* source) {
  const LocalConfig& config = dist.local();
  const FieldCheck check(source, "dist.local");
  RT_RETURN_IF_ERROR(ValidatePeriod(config, check));
  RT_RETURN_IF_ERROR(check.NotNegative("start_epoch", config.start_epoch()));
  RT_RETURN_IF_ERROR(check.Positive("outer_learning_rate", config.outer_learning_rate()));
  RT_RETURN_IF_ERROR(check.FractionBelowOne("outer_momentum", config.outer_momentum()));
  RT_RETURN_IF_ERROR(check.Between("min_cosine", config.min_cosine(), -1, 1));
  RT_RETURN_IF_ERROR(ValidateDifferences(config, check, source));
  if (!UsesLocalRounds(dist)) return RefuseFieldsOfRounds(config, check);
  RT_RETURN_IF_ERROR(ValidateGradientsBesideRounds(dist, source));
  if (!dist.sync_batch_norm()) return OkStatus();
  return check.Error(config.period() > 0 ? "period" : "period_rule",
                     "ranks that take steps of their own cannot share the statistics of every "
                     "step: set dist.sync_batch_norm to false, or leave out dist.local (--set "
                     "dist.local={})");
}

Status ValidatePlanned(const Planned& plan, const ConfigSource* source) {
  const FieldCheck check(source, "dist.planned");
  const auto& ranks = plan.rank();
  const bool rising = std::ranges::adjacent_find(ranks, std::greater_equal()) == ranks.end();
  if (!ranks.empty() && (ranks.Get(0) != 0 || !rising)) {
    return check.Error("rank", "rank: the ranks that train, ascending, from 0");
  }
  if (!ranks.empty() && *ranks.rbegin() < plan.world()) return OkStatus();
  return check.Error(
      "world",
      "world: greater than the last of the ranks that train, of which there is at least one");
}

// One way in which the ranks train together.
Status ValidateServers(const DistConfig& dist, const ConfigSource* source) {
  RT_RETURN_IF_ERROR(ValidateAsynchronous(dist.asynchronous(), source));
  if (!UsesServers(dist.asynchronous())) return OkStatus();
  const FieldCheck check(source, "dist.asynchronous");
  if (UsesLocalRounds(dist)) {
    return check.Error("rule",
                       "ranks take local steps or push to servers: leave out dist.local or "
                       "dist.asynchronous");
  }
  if (dist.plan() == DistConfig::AUTO) {
    return check.Error("rule",
                       "AUTO chooses how the ranks train together: leave out "
                       "dist.asynchronous, or set dist.plan to CONFIG");
  }
  const bool remembers =
      CompressesAnything(dist.compression()) && dist.compression().error_feedback();
  if (remembers && RuleOf(dist.asynchronous()).admission.discard_after > 0) {
    return check.Error("discard_after",
                       "discard_after: with a gradient that is thrown away goes what "
                       "dist.compression has kept of earlier ones: set "
                       "dist.compression.error_feedback to false, or leave out dist.compression");
  }
  if (!dist.sync_batch_norm()) return OkStatus();
  return check.Error("rule",
                     "ranks that do not wait for one another cannot share the statistics of "
                     "every step: set dist.sync_batch_norm to false");
}

// Ranks of which each has some layers make the same step.
Status ValidatePipeline(const DistConfig& dist, const ConfigSource* source) {
  const PipelineConfig& config = dist.model_parallel().pipeline();
  const FieldCheck check(source, "dist.model_parallel.pipeline");
  RT_RETURN_IF_ERROR(check.Between("stages", config.stages(), 1, kMostStages));
  if (!config.cut_after().empty() && config.cut_after_size() != config.stages() - 1) {
    return check.Error(
        "cut_after", fmt::format("{} cut after {}, not {}: name as many, or none",
                                 config.stages() == 1 ? "1 stage is"
                                                      : Counted(config.stages(), "stage") + " are",
                                 Counted(config.stages() - 1, "layer"), config.cut_after_size()));
  }
  if (config.stages() == 1) return OkStatus();
  if (dist.model_parallel().linear() != ModelParallelConfig::WHOLE) {
    return check.Error("stages",
                       "ranks divide linear layers, or have layers of their own: leave out "
                       "dist.model_parallel.linear or dist.model_parallel.pipeline");
  }
  if (UsesLocalRounds(dist) || UsesServers(dist.asynchronous())) {
    return check.Error(
        "stages",
        "stages make every step together: leave out dist.model_parallel.pipeline, or "
        "dist.local and dist.asynchronous");
  }
  if (CompressesAnything(dist.compression())) {
    return check.Error("stages",
                       "the replicas of a stage exchange whole gradients: leave out "
                       "dist.compression or dist.model_parallel.pipeline");
  }
  if (dist.plan() != DistConfig::AUTO) return OkStatus();
  return check.Error("stages",
                     "AUTO chooses how the ranks train together: leave out "
                     "dist.model_parallel.pipeline, or set dist.plan to CONFIG");
}

// Ranks that hold different parts of layers make the same step.
Status ValidateModelParallel(const DistConfig& dist, const ConfigSource* source) {
  const ModelParallelConfig& config = dist.model_parallel();
  const FieldCheck check(source, "dist.model_parallel");
  RT_RETURN_IF_ERROR(check.Between("pieces", config.pieces(), 1, kMostPieces));
  const bool named = config.linear() == ModelParallelConfig::NAMED;
  if (named != !config.layer().empty()) {
    return check.Error("layer", "layer names what NAMED divides: give both, or neither");
  }
  if (config.linear() == ModelParallelConfig::WHOLE) return OkStatus();
  if (UsesLocalRounds(dist) || UsesServers(dist.asynchronous())) {
    return check.Error("linear",
                       "ranks that hold different layers make every step together: leave out "
                       "dist.model_parallel, or dist.local and dist.asynchronous");
  }
  if (dist.plan() == DistConfig::AUTO && !dist.has_planned()) {
    return check.Error("linear",
                       "AUTO chooses how the ranks train together: leave out dist.model_parallel, "
                       "or set dist.plan to CONFIG");
  }
  return OkStatus();
}

// What AUTO chooses must not be there before it has chosen, nor rounds, which it does not take.
Status ValidatePlan(const DistConfig& dist, const ConfigSource* source) {
  const FieldCheck check(source, "dist");
  if (dist.has_planned()) return ValidatePlanned(dist.planned(), source);
  if (dist.plan() != DistConfig::AUTO) return OkStatus();
  if (!UsesLocalRounds(dist) && !CompressesAnything(dist.compression())) return OkStatus();
  return check.Error("plan",
                     "AUTO chooses compression itself, and takes no local steps: leave out "
                     "dist.local and dist.compression, or set dist.plan to CONFIG");
}

}  // namespace

bool UsesPipeline(const DistConfig& config) {
  return config.model_parallel().pipeline().stages() > 1;
}

bool UsesLocalRounds(const DistConfig& config) {
  return config.local().period() > 0 || config.local().period_rule() == LocalConfig::AUTO;
}

bool NeedsSameNumerics(const DistConfig& config) {
  return !UsesLocalRounds(config) || config.local().start_epoch() > 0;
}

Status ValidateDistConfig(const DistConfig& config, const ConfigSource* source) {
  const FieldCheck check(source, "dist");
  RT_RETURN_IF_ERROR(check.Between("bucket_kib", config.bucket_kib(), 1, kLargestBucketKib));
  RT_RETURN_IF_ERROR(
      check.Between("end_bucket_kib", config.end_bucket_kib(), 1, kLargestBucketKib));
  RT_RETURN_IF_ERROR(check.NotNegative("check_every_steps", config.check_every_steps()));
  RT_RETURN_IF_ERROR(
      check.Between("join_timeout_s", config.join_timeout_s(), kShortestS, kLongestS));
  RT_RETURN_IF_ERROR(
      check.Between("hang_timeout_s", config.hang_timeout_s(), kShortestS, kLongestS));
  RT_RETURN_IF_ERROR(ValidateCompression(config.compression(), source));
  RT_RETURN_IF_ERROR(ValidateLocal(config, source));
  RT_RETURN_IF_ERROR(ValidateServers(config, source));
  RT_RETURN_IF_ERROR(ValidateModelParallel(config, source));
  RT_RETURN_IF_ERROR(ValidatePipeline(config, source));
  return ValidatePlan(config, source);
}

}  // namespace ringtail
