#include "dist/compression/scheme_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/config/field_check.h"
#include "dist/compression/codecs/cast_codec.h"
#include "dist/compression/codecs/dgc_codec.h"
#include "dist/compression/codecs/important_filters_codec.h"
#include "dist/compression/codecs/linear8_codec.h"
#include "dist/compression/codecs/one_bit_codec.h"
#include "dist/compression/codecs/qsgd_codec.h"
#include "dist/compression/codecs/sign_codec.h"
#include "dist/compression/codecs/terngrad_codec.h"
#include "dist/compression/codecs/top_k_codec.h"
#include "dist/compression/codecs/two_bit_codec.h"
#include "dist/compression/sketches/power_sgd_sketch.h"
#include "dist/compression/sketches/random_k_sketch.h"

namespace ringtail {
namespace {

using Kind = CompressionScheme::KindCase;

constexpr int kFourBitLevels = 7;  // the most that QSGD writes in 4 bits
constexpr int kMostLevels = 127, kMostRank = 32;
constexpr double kLeastRate = 1e-6;

CompressionRule::LayerKind KindOf(const ParameterSpec& spec) {
  return spec.kind == ParameterKind::kLinearWeight ? CompressionRule::LINEAR
                                                   : CompressionRule::CONVOLUTION;
}

bool Fits(const CompressionRule& rule, const Parameter& p) {
  return (!rule.has_name() || MatchesPattern(p.spec.name, rule.name())) &&
         (!rule.has_kind() || rule.kind() == KindOf(p.spec)) &&
         (!rule.has_min_elements() || p.elements >= rule.min_elements()) &&
         (!rule.has_max_elements() || p.elements <= rule.max_elements());
}

const CompressionScheme& SchemeOf(const CompressionConfig& config, const Parameter& p) {
  static const CompressionScheme dense;
  if (p.spec.kind == ParameterKind::kVector || p.elements < config.min_elements()) return dense;
  const auto rule = std::ranges::find_if(config.rule(), [&](const auto& r) { return Fits(r, p); });
  return rule != config.rule().end() ? rule->scheme() : config.scheme();
}

TwoBitOptions OptionsOf(const TwoBitScheme& scheme) {
  if (scheme.threshold() > 0) {
    return {.rule = TwoBitOptions::Rule::kFixed, .threshold = scheme.threshold()};
  }
  return {.factor = scheme.factor()};
}

ImportantFiltersOptions OptionsOf(const ImportantFiltersScheme& scheme) {
  return {.rho_max = scheme.max_rate(),
          .rho_min = scheme.min_rate(),
          .theta = static_cast<double>(scheme.theta()),
          .power = scheme.power(),
          .warmup_epochs = scheme.warmup_epochs()};
}

ValueFormat FormatOf(SparseValues::Format values) {
  switch (values) {
    case SparseValues::F16:
      return ValueFormat::kHalf;
    case SparseValues::BF16:
      return ValueFormat::kBfloat16;
    case SparseValues::F32:
      break;
  }
  return ValueFormat::kFloat;
}

TopKOptions OptionsOf(const TopKScheme& scheme) {
  return {.density = scheme.density(), .values = FormatOf(scheme.values())};
}

// The densities of warm-up that are above the one that is wanted, and then that.
DgcOptions OptionsOf(const DgcScheme& scheme) {
  DgcOptions options{.values = FormatOf(scheme.values())};
  std::erase_if(options.densities,
                [&](double d) { return !scheme.warm_up() || d <= scheme.density(); });
  options.densities.push_back(scheme.density());
  return options;
}

std::unique_ptr<Codec> MakeCodec(const CompressionScheme& scheme, double samples) {
  switch (scheme.kind_case()) {
    case Kind::kBf16:
      return std::make_unique<CastCodec>(CastOptions{.format = CastFormat::kBf16});
    case Kind::kFp16:
      return std::make_unique<CastCodec>(
          CastOptions{.format = CastFormat::kFp16, .samples = samples});
    case Kind::kLinear8:
      return std::make_unique<Linear8Codec>();
    case Kind::kQsgd:
      return std::make_unique<QsgdCodec>(
          QsgdOptions{.bits = scheme.qsgd().levels() <= kFourBitLevels ? 4 : 8,
                      .levels = scheme.qsgd().levels()});
    case Kind::kTerngrad:
      return std::make_unique<TernGradCodec>(TernGradOptions());
    case Kind::kOneBit:
      return std::make_unique<OneBitCodec>();
    case Kind::kSign:
      return std::make_unique<SignCodec>(
          SignOptions{.majority_vote = scheme.sign().majority_vote()});
    case Kind::kTwoBit:
      return std::make_unique<TwoBitCodec>(OptionsOf(scheme.two_bit()));
    case Kind::kTopK:
      return std::make_unique<TopKCodec>(OptionsOf(scheme.top_k()));
    case Kind::kDgc:
      return std::make_unique<DgcCodec>(OptionsOf(scheme.dgc()));
    case Kind::kImportantFilters:
      return std::make_unique<ImportantFiltersCodec>(OptionsOf(scheme.important_filters()));
    default:
      return nullptr;
  }
}

std::unique_ptr<Sketch> MakeSketch(const CompressionScheme& scheme, const GradientShape& shape) {
  if (scheme.has_random_k()) {
    return std::make_unique<RandomKSketch>(RandomKOptions{.density = scheme.random_k().density()},
                                           shape);
  }
  if (scheme.has_power_sgd() && PowerSgdSketch::Worthwhile(shape, scheme.power_sgd().rank())) {
    return std::make_unique<PowerSgdSketch>(PowerSgdOptions{.rank = scheme.power_sgd().rank()},
                                            shape);
  }
  return nullptr;
}

// Hylo is a choice between two others.
CompressionScheme Resolved(const CompressionScheme& scheme, const ParameterSpec& spec) {
  if (!scheme.has_hylo()) return scheme;
  CompressionScheme resolved;
  if (KindOf(spec) == CompressionRule::LINEAR) {
    *resolved.mutable_two_bit() = scheme.hylo().linear();
  } else {
    *resolved.mutable_important_filters() = scheme.hylo().convolution();
  }
  return resolved;
}

// Casts lose so little that remembering it would cost more than it is worth.
MemoryKind MemoryOf(const CompressionScheme& scheme, const LayerScheme& layer, bool feedback) {
  if (scheme.has_dgc()) return MemoryKind::kMomentum;
  const bool exact_enough = scheme.has_bf16() || scheme.has_fp16();
  if (!feedback || layer.dense() || exact_enough) return MemoryKind::kNone;
  if (layer.codec != nullptr && layer.codec->unbiased()) return MemoryKind::kNone;
  return MemoryKind::kErrorFeedback;
}

template <typename Visit>
void ForEachScheme(const CompressionConfig& config, const Visit& visit) {
  visit(config.scheme());
  for (const CompressionRule& rule : config.rule()) visit(rule.scheme());
}

Status CheckFilters(const ImportantFiltersScheme& scheme, const FieldCheck& check) {
  RT_RETURN_IF_ERROR(check.PositiveFraction("max_rate", scheme.max_rate()));
  RT_RETURN_IF_ERROR(check.Between("min_rate", scheme.min_rate(), kLeastRate, scheme.max_rate()));
  RT_RETURN_IF_ERROR(check.NotNegative("power", scheme.power()));
  RT_RETURN_IF_ERROR(check.Positive("theta", static_cast<double>(scheme.theta())));
  return check.NotNegative("warmup_epochs", scheme.warmup_epochs());
}

Status CheckTwoBit(const TwoBitScheme& scheme, const FieldCheck& check) {
  RT_RETURN_IF_ERROR(check.NotNegative("threshold", scheme.threshold()));
  return check.Positive("factor", scheme.factor());
}

Status CheckDgc(const DgcScheme& scheme, const FieldCheck& check) {
  RT_RETURN_IF_ERROR(check.PositiveFraction("density", scheme.density()));
  RT_RETURN_IF_ERROR(check.FractionBelowOne("momentum", scheme.momentum()));
  return check.NotNegative("clip_norm", scheme.clip_norm());
}

// `path`: of the message that is checked.
Status CheckScheme(const CompressionScheme& scheme, const ConfigSource* source,
                   const std::string& path) {
  const auto* field = CompressionScheme::descriptor()->FindFieldByNumber(scheme.kind_case());
  if (field == nullptr) return OkStatus();
  const FieldCheck check(source, path + "." + field->name());
  switch (scheme.kind_case()) {
    case Kind::kQsgd:
      return check.Between("levels", scheme.qsgd().levels(), 1, kMostLevels);
    case Kind::kTwoBit:
      return CheckTwoBit(scheme.two_bit(), check);
    case Kind::kTopK:
      return check.PositiveFraction("density", scheme.top_k().density());
    case Kind::kRandomK:
      return check.PositiveFraction("density", scheme.random_k().density());
    case Kind::kDgc:
      return CheckDgc(scheme.dgc(), check);
    case Kind::kPowerSgd:
      return check.Between("rank", scheme.power_sgd().rank(), 1, kMostRank);
    case Kind::kImportantFilters:
      return CheckFilters(scheme.important_filters(), check);
    case Kind::kHylo:
      RT_RETURN_IF_ERROR(CheckFilters(scheme.hylo().convolution(),
                                      FieldCheck(source, path + ".hylo.convolution")));
      return CheckTwoBit(scheme.hylo().linear(), FieldCheck(source, path + ".hylo.linear"));
    default:
      return OkStatus();
  }
}

Status CheckRule(const CompressionRule& rule, const ConfigSource* source, const std::string& path) {
  const FieldCheck check(source, path);
  if (!rule.has_scheme()) return check.Error("scheme", "a rule needs a scheme; dense {} is one");
  if (rule.min_elements() < 0) return check.Error("min_elements", "min_elements is below 0");
  if (rule.has_max_elements() && rule.max_elements() < rule.min_elements()) {
    return check.Error("max_elements", "max_elements is below min_elements: no layer fits");
  }
  return CheckScheme(rule.scheme(), source, path + ".scheme");
}

// Momentum is of all layers, those that no scheme of the kind sends included.
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

Status ValidateCompression(const CompressionConfig& config, const ConfigSource* source) {
  const std::string path = "dist.compression";
  const FieldCheck check(source, path);
  RT_RETURN_IF_ERROR(CheckScheme(config.scheme(), source, path + ".scheme"));
  for (int i = 0; i < config.rule_size(); ++i) {
    RT_RETURN_IF_ERROR(CheckRule(config.rule(i), source, fmt::format("{}.rule[{}]", path, i)));
  }
  RT_RETURN_IF_ERROR(CheckOneMomentum(config, source, path));
  RT_RETURN_IF_ERROR(check.NotNegative("min_elements", static_cast<double>(config.min_elements())));
  RT_RETURN_IF_ERROR(check.NotNegative("dense_epochs", config.dense_epochs()));
  RT_RETURN_IF_ERROR(check.NotNegative("guard_every_steps", config.guard_every_steps()));
  RT_RETURN_IF_ERROR(check.Between("guard_min_cosine", config.guard_min_cosine(), -1, 1));
  if (FindDgc(config) != nullptr && config.dense_epochs() > 0) {
    return check.Error("dense_epochs",
                       "dgc has a warm-up of its own, from a quarter of the gradient down; leave "
                       "dense_epochs out");
  }
  return OkStatus();
}

bool MatchesPattern(std::string_view name, std::string_view pattern) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return name == pattern;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (size_t at = star; at <= name.size(); ++at) {
    if (MatchesPattern(name.substr(at), rest)) return true;
  }
  return false;
}

bool CompressesAnything(const CompressionConfig& config) {
  bool any = false;
  ForEachScheme(config, [&](const CompressionScheme& s) {
    any |= s.kind_case() != Kind::KIND_NOT_SET && !s.has_dense();
  });
  return any;
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
    const CompressionScheme scheme = Resolved(SchemeOf(config, p), p.spec);
    LayerScheme& layer = layers.emplace_back();
    layer.codec = MakeCodec(scheme, samples);
    layer.sketch = MakeSketch(scheme, GradientShapeOf(p.spec));
    layer.memory = MemoryOf(scheme, layer, config.error_feedback());
    const auto* field = CompressionScheme::descriptor()->FindFieldByNumber(scheme.kind_case());
    layer.name = layer.dense() || field == nullptr ? "dense" : field->name();
  }
  return layers;
}

}  // namespace ringtail
