#include "optim/decay.h"

#include <fmt/format.h>

#include <cmath>

namespace ringtail {

Decay::Decay(const OptimConfig& config, const ParameterArena& arena)
    : weight_decay_(config.weight_decay()),
      layer_decay_(config.layer_decay()),
      decay_vectors_(config.decay_vectors()) {
  for (const Parameter& p : arena.parameters()) {
    const bool decays = decay_vectors_ || p.spec.kind != ParameterKind::kVector;
    decay_.push_back(decays ? weight_decay_ : 0);
    rate_factors_.push_back(std::pow(layer_decay_, p.spec.depth));
  }
}

std::string Decay::Describe() const {
  return fmt::format(" weight_decay={}{}{}", weight_decay_, decay_vectors_ ? " (vectors, too)" : "",
                     layer_decay_ < 1 ? fmt::format(" layer_decay={}", layer_decay_) : "");
}

}  // namespace ringtail
