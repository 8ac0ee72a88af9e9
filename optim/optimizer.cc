#include "optim/optimizer.h"

#include "core/config/field_check.h"
#include "optim/adam.h"
#include "optim/decay.h"
#include "optim/lamb.h"
#include "optim/lars.h"
#include "optim/muon.h"
#include "optim/sgd.h"

namespace ringtail {
namespace {

Status ValidateCommon(const OptimConfig& config, const ConfigSource* source) {
  const FieldCheck check(source, "optim");
  RT_RETURN_IF_ERROR(check.NotNegative("weight_decay", config.weight_decay()));
  RT_RETURN_IF_ERROR(check.NotNegative("clip_norm", config.clip_norm()));
  RT_RETURN_IF_ERROR(check.Positive("layer_decay", config.layer_decay()));
  RT_RETURN_IF_ERROR(check.Fraction("layer_decay", config.layer_decay()));
  return check.FractionBelowOne("ema_decay", config.ema_decay());
}

// Calls fn with a null pointer to the class of the configured rule.
template <typename Function>
bool OfRule(const OptimConfig& config, const Function& fn) {
  switch (config.rule_case()) {
    case OptimConfig::kSgd:
    case OptimConfig::RULE_NOT_SET:
      return fn(static_cast<Sgd*>(nullptr));
    case OptimConfig::kAdam:
    case OptimConfig::kAdamw:
      return fn(static_cast<Adam*>(nullptr));
    case OptimConfig::kLars:
      return fn(static_cast<Lars*>(nullptr));
    case OptimConfig::kLamb:
      return fn(static_cast<Lamb*>(nullptr));
    case OptimConfig::kMuon:
      return fn(static_cast<Muon*>(nullptr));
  }
  return false;
}

}  // namespace

// A new rule adds a case here and one in OfRule; optim/README.md has the steps.
StatusOr<std::unique_ptr<Optimizer>> Optimizer::Create(const OptimConfig& config,
                                                       ParameterArena* arena,
                                                       const OptimizerOptions& options) {
  const ConfigSource* const source = options.source;
  RT_RETURN_IF_ERROR(ValidateCommon(config, source));
  Decay decay(config, *arena);
  std::unique_ptr<Optimizer> optimizer;
  switch (config.rule_case()) {
    case OptimConfig::kSgd:
    case OptimConfig::RULE_NOT_SET:
      RT_RETURN_IF_ERROR(Sgd::Validate(config.sgd(), source));
      optimizer = std::make_unique<Sgd>(config.sgd(), std::move(decay), arena);
      break;
    case OptimConfig::kAdam:
      RT_RETURN_IF_ERROR(Adam::Validate(config.adam(), "adam", source));
      optimizer =
          std::make_unique<Adam>(config.adam(), Adam::DecayKind::kCoupled, std::move(decay), arena);
      break;
    case OptimConfig::kAdamw:
      RT_RETURN_IF_ERROR(Adam::Validate(config.adamw(), "adamw", source));
      optimizer = std::make_unique<Adam>(config.adamw(), Adam::DecayKind::kDecoupled,
                                         std::move(decay), arena);
      break;
    case OptimConfig::kLars:
      RT_RETURN_IF_ERROR(Lars::Validate(config.lars(), source));
      optimizer = std::make_unique<Lars>(config.lars(), std::move(decay), arena);
      break;
    case OptimConfig::kLamb:
      RT_RETURN_IF_ERROR(Lamb::Validate(config.lamb(), source));
      optimizer = std::make_unique<Lamb>(config.lamb(), std::move(decay), arena);
      break;
    case OptimConfig::kMuon:
      RT_RETURN_IF_ERROR(Muon::Validate(config.muon(), source));
      optimizer =
          std::make_unique<Muon>(config.muon(), std::move(decay), arena, options.bf16_products);
      break;
  }
  return optimizer;
}

void Optimizer::StepPrepared(int64_t step, double learning_rate, PreparedStep* prepared) {
  Step(step, learning_rate, prepared->grad_scale());
}

bool Optimizer::AdaptsToBatch(const OptimConfig& config) {
  return OfRule(config, []<typename Rule>(Rule*) { return Rule::kAdaptsToBatch; });
}

bool Optimizer::TakesBf16Products(const OptimConfig& config) {
  return config.has_muon() && Muon::TakesBf16Products(config.muon());
}

bool Optimizer::UpdatesElementwise(const OptimConfig& config) {
  return OfRule(config, []<typename Rule>(Rule*) { return Rule::kUpdatesElementwise; });
}

}  // namespace ringtail
