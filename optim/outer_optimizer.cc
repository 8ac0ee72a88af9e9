#include "optim/outer_optimizer.h"

#include "optim/decay.h"

namespace ringtail {
namespace {

SgdConfig SgdOf(const OuterRule& rule) {
  SgdConfig config;
  config.set_momentum(rule.momentum);
  config.set_nesterov(rule.form == OuterRule::Form::kNesterov && rule.momentum > 0);
  return config;
}

Decay NoDecay(const ParameterArena& arena) {
  OptimConfig config;
  config.set_weight_decay(0);
  return {config, arena};
}

}  // namespace

OuterOptimizer::OuterOptimizer(const OuterRule& rule, ParameterArena* arena)
    : rule_(rule), sgd_(SgdOf(rule), NoDecay(*arena), arena) {}

void OuterOptimizer::Step(int64_t round, double mean, double inner_rate) {
  const bool slow = rule_.form == OuterRule::Form::kSlowMomentum && inner_rate > 0;
  const double unit = slow ? inner_rate : 1;
  sgd_.Step(round, rule_.learning_rate * unit, mean / unit);
}

}  // namespace ringtail
