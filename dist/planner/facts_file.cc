#include "dist/planner/facts_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/config/field_check.h"
#include "core/config/message_checks.h"
#include "core/config/text_config.h"
#include "dist/compression/scheme_choice.h"

namespace ringtail {
namespace {

constexpr double kMostSeconds = 1e6, kFewestCores = 1e-3, kMostCores = 4096;
// Codecs are asked what they send, and some of them have memory for it: 2 GiB of a parameter.
constexpr double kMostElements = int64_t{1} << 31, kMostOfParameter = int64_t{1} << 29;
constexpr double kMostChannels = 1 << 20;
constexpr double kMostLatency = 1000, kMostPerByte = 1, kMostCpuPerByte = 1e-3,
                 kMostCpuPerMessage = 1, kMostDeviation = 10, kMostWakeDelay = 10;
constexpr int kMostParameters = 10'000, kMostBatches = 64, kMostSchemes = 64;
constexpr int kMostSizes = 64, kMostImageSize = 65'536;
constexpr double kMostBatch = 1 << 20, kMostLoading = 1e3, kMostEpochs = 1e6;
constexpr double kRounding = 1 + 1e-9;  // of a sum

Status CheckLength(const FieldCheck& check, std::string_view field, int length, int least,
                   int most) {
  if (length >= least && length <= most) return OkStatus();
  return check.Error(
      field, fmt::format("{} has {} entries; it must have {} to {}", field, length, least, most));
}

// A list with one time for each parameter.
Status CheckTimes(const FieldCheck& check, std::string_view field,
                  const google::protobuf::RepeatedField<double>& times, int parameters) {
  if (times.size() != parameters) {
    return check.Error(
        field, fmt::format("{} has {} entries for {} parameters", field, times.size(), parameters));
  }
  for (int i = 0; i < times.size(); ++i) {
    RT_RETURN_IF_ERROR(check.Between(fmt::format("{}[{}]", field, i), times[i], 0, kMostSeconds));
  }
  return OkStatus();
}

// Adds its elements.
Status CheckParameter(const FieldCheck& check, const ParameterFacts& parameter, double* all) {
  if (parameter.dimension().empty()) return check.Error("dimension", "dimension is missing");
  double elements = 1;
  for (const int64_t dimension : parameter.dimension()) {
    RT_RETURN_IF_ERROR(
        check.Between("dimension", static_cast<double>(dimension), 1, kMostOfParameter));
    elements *= static_cast<double>(dimension);
  }
  *all += elements;
  if (elements > kMostOfParameter) return check.Error("dimension", "dimension: over 2^29 elements");
  if (*all > kMostElements) {
    return check.Error("dimension", "dimension: over 2^31 elements of all parameters so far");
  }
  const bool is_weight = parameter.kind() != ParameterFacts::VECTOR;
  if (is_weight && parameter.dimension_size() < 2) {
    return check.Error("dimension", "dimension: a weight has at least two");
  }
  return OkStatus();
}

Status CheckStep(const FieldCheck& check, const StepFacts& step, int64_t batch_before,
                 int parameters) {
  const auto least = static_cast<double>(batch_before + 1);
  RT_RETURN_IF_ERROR(check.Between("batch", static_cast<double>(step.batch()), least, kMostBatch));
  RT_RETURN_IF_ERROR(check.PositiveUpTo("forward_s", step.forward_s(), kMostSeconds));
  RT_RETURN_IF_ERROR(check.PositiveUpTo("backward_s", step.backward_s(), kMostSeconds));
  RT_RETURN_IF_ERROR(CheckTimes(check, "finish_s", step.finish_s(), parameters));
  double before = 0;
  for (int i = 0; i < parameters; ++i) {
    RT_RETURN_IF_ERROR(
        check.Between(fmt::format("finish_s[{}]", i), step.finish_s(i), before, step.backward_s()));
    before = step.finish_s(i);
  }
  return OkStatus();
}

Status CheckSteps(const FieldCheck& check,
                  const google::protobuf::RepeatedPtrField<StepFacts>& steps, int parameters) {
  int64_t batch = 0;
  for (int i = 0; i < steps.size(); ++i) {
    const FieldCheck within = check.Within(fmt::format("step[{}]", i));
    RT_RETURN_IF_ERROR(CheckStep(within, steps[i], batch, parameters));
    batch = steps[i].batch();
  }
  return OkStatus();
}

bool SameBatches(const google::protobuf::RepeatedPtrField<StepFacts>& a,
                 const google::protobuf::RepeatedPtrField<StepFacts>& b) {
  return std::ranges::equal(a, b, {}, &StepFacts::batch, &StepFacts::batch);
}

Status CheckSizes(const FieldCheck& check, const PlannerFacts& facts) {
  RT_RETURN_IF_ERROR(check.Between("image_size", facts.image_size(), 0, kMostImageSize));
  RT_RETURN_IF_ERROR(CheckLength(check, "further_size", facts.further_size_size(), 0, kMostSizes));
  std::set<int64_t> sizes = {facts.image_size()};
  double shares = 0;
  for (int i = 0; i < facts.further_size_size(); ++i) {
    const FieldCheck within = check.Within(fmt::format("further_size[{}]", i));
    const SizeFacts& size = facts.further_size(i);
    RT_RETURN_IF_ERROR(within.Between("image_size", size.image_size(), 1, kMostImageSize));
    if (!sizes.insert(size.image_size()).second) {
      return within.Error("image_size", fmt::format("there is another of {}", size.image_size()));
    }
    RT_RETURN_IF_ERROR(within.PositiveUpTo("share", size.share(), 1));
    shares += size.share();
    RT_RETURN_IF_ERROR(within.Between("load_cpu_s", size.load_cpu_s(), 0, kMostLoading));
    RT_RETURN_IF_ERROR(within.Between("decode_cpu_s", size.decode_cpu_s(), 0, kMostLoading));
    RT_RETURN_IF_ERROR(CheckSteps(within, size.step(), facts.parameter_size()));
    if (!SameBatches(size.step(), facts.step())) {
      return within.Error("step", "the batches are not those of the first image size");
    }
  }
  if (shares < 1) return OkStatus();
  return check.Error("further_size", fmt::format("the shares add up to {}, and leave no steps for "
                                                 "the first image size",
                                                 shares));
}

Status CheckLink(const FieldCheck& check, const LinkFacts& link) {
  RT_RETURN_IF_ERROR(check.Between("latency_s", link.latency_s(), 0, kMostLatency));
  RT_RETURN_IF_ERROR(check.Between("seconds_per_byte", link.seconds_per_byte(), 0, kMostPerByte));
  return check.Between("reduce_seconds_per_byte", link.reduce_seconds_per_byte(), 0, kMostPerByte);
}

Status CheckCluster(const FieldCheck& check, const ClusterFacts& cluster) {
  RT_RETURN_IF_ERROR(check.Between("hosts", cluster.hosts(), 1, kMostPlannedHosts));
  RT_RETURN_IF_ERROR(
      check.Between("ranks_per_host", cluster.ranks_per_host(), 1, kMostRanksPerHost));
  if (cluster.has_cores_per_host()) {
    RT_RETURN_IF_ERROR(
        check.Between("cores_per_host", cluster.cores_per_host(), kFewestCores, kMostCores));
  }
  RT_RETURN_IF_ERROR(CheckLink(check.Within("within_host"), cluster.within_host()));
  RT_RETURN_IF_ERROR(CheckLink(check.Within("between_hosts"), cluster.between_hosts()));
  RT_RETURN_IF_ERROR(
      check.Between("cpu_seconds_per_byte", cluster.cpu_seconds_per_byte(), 0, kMostCpuPerByte));
  return check.Between("cpu_seconds_per_message", cluster.cpu_seconds_per_message(), 0,
                       kMostCpuPerMessage);
}

Status CheckMachine(const FieldCheck& check, const PlannerFacts& facts) {
  RT_RETURN_IF_ERROR(check.Between("cores", facts.cores(), kFewestCores, kMostCores));
  RT_RETURN_IF_ERROR(check.Between("update_s", facts.update_s(), 0, kMostSeconds));
  RT_RETURN_IF_ERROR(check.Between("norm_s", facts.norm_s(), 0, facts.update_s()));
  RT_RETURN_IF_ERROR(check.Between("average_s", facts.average_s(), 0, facts.update_s()));
  RT_RETURN_IF_ERROR(check.Between("preparing_s", facts.preparing_s(), 0, kMostSeconds));
  RT_RETURN_IF_ERROR(check.Between("accumulate_s", facts.accumulate_s(), 0, kMostSeconds));
  RT_RETURN_IF_ERROR(check.Between("merge_s", facts.merge_s(), 0, kMostSeconds));
  RT_RETURN_IF_ERROR(check.Between("data_wait_s", facts.data_wait_s(), 0, kMostSeconds));
  RT_RETURN_IF_ERROR(check.Between("load_cpu_s", facts.load_cpu_s(), 0, kMostLoading));
  RT_RETURN_IF_ERROR(check.Between("decode_cpu_s", facts.decode_cpu_s(), 0, kMostLoading));
  RT_RETURN_IF_ERROR(check.Between("cached_share", facts.cached_share(), 0, 1));
  RT_RETURN_IF_ERROR(check.Between("shards", facts.shards(), 1, 65536));
  RT_RETURN_IF_ERROR(check.PositiveUpTo("epochs", facts.epochs(), kMostEpochs));
  RT_RETURN_IF_ERROR(check.Between("wake_delay_s", facts.wake_delay_s(), 0, kMostWakeDelay));
  RT_RETURN_IF_ERROR(check.Between("step_deviation", facts.step_deviation(), 0, kMostDeviation));
  RT_RETURN_IF_ERROR(check.Between("buffer_elements", static_cast<double>(facts.buffer_elements()),
                                   0, kMostElements));
  RT_RETURN_IF_ERROR(CheckLength(check, "parameter", facts.parameter_size(), 1, kMostParameters));
  RT_RETURN_IF_ERROR(CheckLength(check, "step", facts.step_size(), 1, kMostBatches));
  return CheckLength(check, "scheme", facts.scheme_size(), 0, kMostSchemes);
}

Status CheckPreparation(const FieldCheck& check, const PlannerFacts& facts) {
  if (facts.prepare_s().empty()) return OkStatus();
  RT_RETURN_IF_ERROR(CheckTimes(check, "prepare_s", facts.prepare_s(), facts.parameter_size()));
  double sum = 0;
  for (const double seconds : facts.prepare_s()) sum += seconds;
  const double update = facts.update_s() + facts.preparing_s();
  if (sum <= update * kRounding) return OkStatus();
  return check.Error(
      "prepare_s",
      fmt::format("prepare_s adds up to {}; update_s and preparing_s only to {}", sum, update));
}

Status CheckNorms(const FieldCheck& check, const PlannerFacts& facts) {
  RT_RETURN_IF_ERROR(CheckLength(check, "synchronized_channels", facts.synchronized_channels_size(),
                                 0, kMostParameters));
  for (const int64_t channels : facts.synchronized_channels()) {
    RT_RETURN_IF_ERROR(
        check.Between("synchronized_channels", static_cast<double>(channels), 1, kMostChannels));
  }
  return OkStatus();
}

Status CheckScheme(const FieldCheck& check, const SchemeFacts& scheme, int parameters,
                   std::set<std::string>* names) {
  if (scheme.name().empty() || !names->insert(scheme.name()).second) {
    return check.Error("name",
                       fmt::format("the name '{}' is empty, or not the only one", scheme.name()));
  }
  const Status valid = ValidateCompression(scheme.compression(), nullptr);
  if (!valid.ok()) return check.Error("compression", valid.message());
  RT_RETURN_IF_ERROR(CheckTimes(check, "encode_s", scheme.encode_s(), parameters));
  RT_RETURN_IF_ERROR(CheckTimes(check, "decode_s", scheme.decode_s(), parameters));
  if (scheme.clear_s().empty()) return OkStatus();
  return CheckTimes(check, "clear_s", scheme.clear_s(), parameters);
}

}  // namespace

Status CheckFacts(const PlannerFacts& facts, const ConfigSource* source) {
  RT_RETURN_IF_ERROR(CheckStrings(facts, source, ""));
  const FieldCheck check(source, "");
  RT_RETURN_IF_ERROR(CheckMachine(check, facts));
  double elements = 0;
  for (int i = 0; i < facts.parameter_size(); ++i) {
    const FieldCheck within = check.Within(fmt::format("parameter[{}]", i));
    RT_RETURN_IF_ERROR(CheckParameter(within, facts.parameter(i), &elements));
  }
  RT_RETURN_IF_ERROR(CheckNorms(check, facts));
  RT_RETURN_IF_ERROR(CheckPreparation(check, facts));
  RT_RETURN_IF_ERROR(CheckSteps(check, facts.step(), facts.parameter_size()));
  RT_RETURN_IF_ERROR(CheckSizes(check, facts));
  std::set<std::string> names = {"dense"};
  for (int i = 0; i < facts.scheme_size(); ++i) {
    const FieldCheck within = check.Within(fmt::format("scheme[{}]", i));
    RT_RETURN_IF_ERROR(CheckScheme(within, facts.scheme(i), facts.parameter_size(), &names));
  }
  return CheckCluster(check.Within("cluster"), facts.cluster());
}

StatusOr<PlannerFacts> ParseFacts(std::string_view text, std::string_view file_name) {
  PlannerFacts facts;
  ConfigSource source;
  RT_RETURN_IF_ERROR(ParseTextConfig(text, file_name, &facts, &source));
  RT_RETURN_IF_ERROR(CheckFacts(facts, &source));
  return facts;
}

std::string FactsText(const PlannerFacts& facts) { return PrintTextConfig(facts); }

}  // namespace ringtail
