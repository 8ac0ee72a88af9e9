#include "dist/compression/scheme_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/config/field_check.h"
#include "dist/compression/schemes.h"

namespace ringtail {
namespace {

using Kind = CompressionScheme::KindCase;

constexpr int kMostSteps = 1000;

CompressionRule::LayerKind KindOf(const ParameterSpec& spec) {
  switch (spec.kind) {
    case ParameterKind::kVector:
      return CompressionRule::VECTOR;
    case ParameterKind::kLinearWeight:
      return CompressionRule::LINEAR;
    case ParameterKind::kConvolutionWeight:
      break;
  }
  return CompressionRule::CONVOLUTION;
}

// Only a rule of their kind fits vectors.
bool Fits(const CompressionRule& rule, const Parameter& p) {
  return (rule.kind() == CompressionRule::VECTOR) == (p.spec.kind == ParameterKind::kVector) &&
         (!rule.has_name() || MatchesPattern(p.spec.name, rule.name())) &&
         (!rule.has_kind() || rule.kind() == KindOf(p.spec)) &&
         (!rule.has_min_elements() || p.elements >= rule.min_elements()) &&
         (!rule.has_max_elements() || p.elements <= rule.max_elements());
}

struct ConfiguredScheme {
  const CompressionScheme& scheme;
  int64_t every_steps = 1;
};

ConfiguredScheme FindScheme(const CompressionConfig& config, const Parameter& p) {
  static const CompressionScheme dense;
  const bool vector = p.spec.kind == ParameterKind::kVector;
  if (!vector && p.elements < config.min_elements()) return {dense};
  const auto rule = std::ranges::find_if(config.rule(), [&](const auto& r) { return Fits(r, p); });
  if (rule != config.rule().end()) return {rule->scheme(), rule->every_steps()};
  return {vector ? dense : config.scheme()};
}

LayerScheme MakeScheme(const CompressionConfig& config, const Parameter& p, double samples) {
  const auto& [scheme, every_steps] = FindScheme(config, p);
  const GradientShape shape = GradientShapeOf(p.spec);
  if (!IsWorthwhile(scheme, shape)) return {};
  LayerScheme layer = MakeLayerScheme(scheme, shape, {.samples = samples}, config.error_feedback());
  layer.every_steps = every_steps;
  // What waits needs a memory, also where nothing is left out.
  if (every_steps > 1 && layer.memory == MemoryKind::kNone) {
    layer.memory = MemoryKind::kErrorFeedback;
  }
  return layer;
}

template <typename Visit>
void ForEachScheme(const CompressionConfig& config, const Visit& visit) {
  visit(config.scheme());
  for (const CompressionRule& rule : config.rule()) visit(rule.scheme());
}

Status CheckRule(const CompressionRule& rule, bool error_feedback, const ConfigSource* source,
                 const std::string& path) {
  const FieldCheck check(source, path);
  if (!rule.has_scheme()) return check.Error("scheme", "a rule needs a scheme; dense {} is one");
  if (rule.min_elements() < 0) return check.Error("min_elements", "min_elements is below 0");
  if (rule.has_max_elements() && rule.max_elements() < rule.min_elements()) {
    return check.Error("max_elements", "max_elements is below min_elements: no layer fits");
  }
  RT_RETURN_IF_ERROR(check.Between("every_steps", rule.every_steps(), 1, kMostSteps));
  const Kind kind = rule.scheme().kind_case();
  if (rule.every_steps() > 1 && (kind == Kind::kDense || kind == Kind::KIND_NOT_SET)) {
    return check.Error("every_steps", "what travels uncompressed cannot wait; bf16 {} can");
  }
  if (rule.every_steps() > 1 && (kind == Kind::kQsgd || kind == Kind::kTerngrad)) {
    return check.Error("every_steps",
                       "what draws at random cannot wait: the residual would keep its noise, which "
                       "grows (dist/compression/memory/error_feedback.h); linear8 {} can");
  }
  if (rule.every_steps() > 1 && !error_feedback) {
    return check.Error("every_steps", "gradients wait in the residual: error_feedback is false");
  }
  return CheckScheme(rule.scheme(), check.Within("scheme"));
}

// There is one momentum for all layers, including those that dgc does not send.
Status CheckOneMomentum(const CompressionConfig& config, const ConfigSource* source,
                        const std::string& path) {
  const DgcScheme* const first = FindDgc(config);
  if (first == nullptr) return OkStatus();
  for (int i = 0; i < config.rule_size(); ++i) {
    if (!config.rule(i).scheme().has_dgc()) continue;
    const DgcScheme& other = config.rule(i).scheme().dgc();
    const FieldCheck check(source, fmt::format("{}.rule[{}].scheme.dgc", path, i));
    const auto differs = [&](const char* field) {
      return check.Error(field, fmt::format("{} is the same for all layers with dgc: give all of "
                                            "them the same, or none",
                                            field));
    };
    if (other.momentum() != first->momentum()) return differs("momentum");
    if (other.nesterov() != first->nesterov()) return differs("nesterov");
    if (other.clip_norm() != first->clip_norm()) return differs("clip_norm");
  }
  return OkStatus();
}

}  // namespace

Status ValidateCompression(const CompressionConfig& config, const ConfigSource* source,
                           const std::string& path) {
  const FieldCheck check(source, path);
  RT_RETURN_IF_ERROR(CheckScheme(config.scheme(), check.Within("scheme")));
  for (int i = 0; i < config.rule_size(); ++i) {
    RT_RETURN_IF_ERROR(CheckRule(config.rule(i), config.error_feedback(), source,
                                 fmt::format("{}.rule[{}]", path, i)));
  }
  RT_RETURN_IF_ERROR(CheckOneMomentum(config, source, path));
  RT_RETURN_IF_ERROR(check.NotNegative("min_elements", static_cast<double>(config.min_elements())));
  RT_RETURN_IF_ERROR(check.NotNegative("dense_epochs", config.dense_epochs()));
  RT_RETURN_IF_ERROR(check.NotNegative("guard_every_steps", config.guard_every_steps()));
  RT_RETURN_IF_ERROR(check.Between("guard_min_cosine", config.guard_min_cosine(), -1, 1));
  RT_RETURN_IF_ERROR(
      check.Between("statistics_every_steps", config.statistics_every_steps(), 1, kMostSteps));
  if (FindDgc(config) != nullptr && config.dense_epochs() > 0) {
    return check.Error("dense_epochs",
                       "dgc has a warm-up of its own, from a quarter of the gradient down; leave "
                       "dense_epochs out");
  }
  return OkStatus();
}

// Greedy: a star takes as few characters as possible, and one more whenever the rest does not
// match.
bool MatchesPattern(std::string_view name, std::string_view pattern) {
  size_t at = 0, in_pattern = 0;
  size_t star = std::string_view::npos, resume = 0;  // the last star, and where its characters end
  while (at < name.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      resume = at;
    } else if (in_pattern < pattern.size() && pattern[in_pattern] == name[at]) {
      ++in_pattern;
      ++at;
    } else if (star != std::string_view::npos) {
      in_pattern = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', in_pattern) == std::string_view::npos;
}

bool CompressesAnything(const CompressionConfig& config) {
  bool any = false;
  ForEachScheme(config, [&](const CompressionScheme& s) {
    any |= s.kind_case() != Kind::KIND_NOT_SET && !s.has_dense();
  });
  return any;
}

bool TakesStatistics(const CompressionConfig& config, int64_t step) {
  return step % config.statistics_every_steps() == 0;
}

const DgcScheme* FindDgc(const CompressionConfig& config) {
  const DgcScheme* found = nullptr;
  ForEachScheme(config, [&](const CompressionScheme& s) {
    if (s.has_dgc() && found == nullptr) found = &s.dgc();
  });
  return found;
}

std::vector<LayerScheme> ChooseSchemes(const CompressionConfig& config,
                                       std::span<const Parameter> parameters, double samples) {
  std::vector<LayerScheme> layers;
  for (const Parameter& p : parameters) {
    layers.push_back(MakeScheme(config, p, samples));
  }
  return layers;
}

}  // namespace ringtail
