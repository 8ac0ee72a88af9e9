#include "apps/plan/dropped_ways.h"

#include <fmt/core.h>

#include "dist/compression/scheme_choice.h"
#include "dist/config_check.h"
#include "dist/parameter_server/rule_choice.h"

namespace ringtail {
namespace {

using Settings = std::vector<std::string>;

void AddMomentum(double momentum, bool nesterov, Settings* settings) {
  if (momentum == 0) return;
  settings->push_back(fmt::format("optim.sgd.momentum={}", momentum));
  if (nesterov) settings->emplace_back("optim.sgd.nesterov=true");
}

// Whether the optimizer leaves momentum to what exchanges gradients; sgd is the default rule.
bool HasNoMomentum(const OptimConfig& optim) {
  const bool sgd = optim.has_sgd() || optim.rule_case() == OptimConfig::RULE_NOT_SET;
  return sgd && optim.sgd().momentum() == 0;
}

void AddLostMomentum(const RunConfig& config, bool dgc_stays, Settings* settings) {
  if (!HasNoMomentum(config.optim())) return;
  const DistConfig& dist = config.dist();
  const DgcScheme* const dgc = FindDgc(dist.compression());
  if (dgc != nullptr && !dgc_stays) {
    AddMomentum(dgc->momentum(), dgc->nesterov(), settings);
  } else if (dist.asynchronous().rule() == AsynchronousConfig::DANA) {
    AddMomentum(RuleOf(dist.asynchronous()).compensation.decay, /*nesterov=*/false, settings);
  }
}

}  // namespace

Settings SettingsWithoutOtherWays(const RunConfig& config, const KeptWays& kept) {
  const DistConfig& dist = config.dist();
  const bool divided = dist.model_parallel().linear() != ModelParallelConfig::WHOLE;
  Settings settings;
  if (UsesLocalRounds(dist) && !kept.rounds) settings.emplace_back("dist.local={}");
  if (CompressesAnything(dist.compression()) && !kept.compression) {
    settings.emplace_back("dist.compression={}");
  }
  if (UsesServers(dist.asynchronous())) settings.emplace_back("dist.asynchronous={}");
  if (UsesPipeline(dist) || (divided && !kept.divided_layers)) {
    settings.emplace_back("dist.model_parallel={}");
  }
  AddLostMomentum(config, kept.momentum, &settings);
  return settings;
}

}  // namespace ringtail
