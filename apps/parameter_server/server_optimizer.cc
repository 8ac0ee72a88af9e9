#include "apps/parameter_server/server_optimizer.h"

#include "dist/parameter_server/momentum_correction.h"
#include "dist/parameter_server/rule_choice.h"

namespace ringtail {
double MomentumOf(const OptimConfig& optim) {
  switch (optim.rule_case()) {
    case OptimConfig::kLars:
      return optim.lars().momentum();
    case OptimConfig::kMuon:
      return optim.muon().momentum();
    case OptimConfig::kSgd:
    case OptimConfig::RULE_NOT_SET:
      return optim.sgd().momentum();
    case OptimConfig::kAdam:
    case OptimConfig::kAdamw:
    case OptimConfig::kLamb:
      return 1;
  }
  return 1;
}

bool StepsHaveTheirOwnLength(const OptimConfig& optim) {
  return optim.rule_case() != OptimConfig::kSgd && optim.rule_case() != OptimConfig::RULE_NOT_SET;
}

OptimConfig ServerOptimizer(const OptimConfig& optim, const AsynchronousConfig& config,
                            const AsynchronousRule& rule, int workers) {
  OptimConfig corrected = optim;
  if (config.as_published()) return corrected;
  const double under_way = PushesUnderWay(rule, workers, PullsAhead(config));
  const auto correct = [under_way](auto* momentum_rule) {
    momentum_rule->set_momentum(ExplicitMomentum(momentum_rule->momentum(), under_way));
  };
  switch (optim.rule_case()) {
    case OptimConfig::kMuon:
      correct(corrected.mutable_muon());
      break;
    case OptimConfig::kLars:
      correct(corrected.mutable_lars());
      break;
    case OptimConfig::kSgd:
    case OptimConfig::RULE_NOT_SET: {
      SgdConfig* const sgd = corrected.mutable_sgd();
      const double momentum = sgd->momentum();
      correct(sgd);
      if (sgd->momentum() == 0) sgd->set_nesterov(false);  // which needs some
      corrected.set_learning_rate(optim.learning_rate() * (1 - sgd->momentum()) / (1 - momentum));
      break;
    }
    case OptimConfig::kAdam:
    case OptimConfig::kAdamw:
    case OptimConfig::kLamb:
      break;
  }
  return corrected;
}

Status CheckServerOptimizer(const AsynchronousRule& rule, const OptimConfig& optim) {
  if (rule.compensation.form != Compensation::Form::kDana || MomentumOf(optim) == 0) {
    return OkStatus();
  }
  return InvalidArgument(
      "dist.asynchronous.rule: DANA has the momentum itself (dist.asynchronous.decay); set "
      "optim.sgd.momentum to 0, without nesterov");
}

}  // namespace ringtail
