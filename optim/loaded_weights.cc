#include "optim/loaded_weights.h"

#include <fmt/format.h>

namespace ringtail {
namespace {

constexpr double kMostOfNorm = 0.015;    // of a weight tensor, in a step
constexpr double kTypicalWeight = 0.03;  // root mean square in a trained network
constexpr double kMostOfAdam = 0.05;     // of a typical weight: adam's steps differ in sign
constexpr double kMostOfSgd = 0.5;       // rate / (1 - momentum)
constexpr double kSuggested = 0.3;       // of the bound

// The rate of layers below the head at which a step moves weights as far as the bound allows.
double HighestRate(const OptimConfig& config) {
  switch (config.rule_case()) {
    case OptimConfig::kMuon:
      return kMostOfNorm / config.muon().trust();
    case OptimConfig::kLars:
      return kMostOfNorm / config.lars().trust();
    case OptimConfig::kLamb:
      return kMostOfNorm;
    case OptimConfig::kAdam:
    case OptimConfig::kAdamw:
      return kMostOfAdam * kTypicalWeight;
    case OptimConfig::kSgd:
    case OptimConfig::RULE_NOT_SET:
      break;
  }
  return kMostOfSgd * (1 - config.sgd().momentum());
}

}  // namespace

std::string WarnOfErasing(const OptimConfig& config, double configured_rate) {
  const double highest = HighestRate(config);
  const double rate = config.learning_rate() * config.layer_decay();
  if (rate <= highest) return "";
  return fmt::format(
      "at a learning rate of {:.3g} the weights that were loaded are soon erased; try --set "
      "optim.learning_rate={:.2g}, or freeze layers (--freeze all-but-head)",
      rate, kSuggested * highest / rate * configured_rate);
}

std::string WarnOfOtherRulesRate(const OptimConfig& config, double configured_rate) {
  constexpr double kMostOfAnyAdam = 0.1;
  constexpr double kMostOfAnySgd = 10;  // rate / (1 - momentum)
  if (config.has_sgd() && configured_rate > kMostOfAnySgd * (1 - config.sgd().momentum())) {
    return fmt::format(
        "sgd with a momentum of {:.3g} at a learning rate of {:.3g}; was the rate meant for "
        "another rule? Try --set optim.learning_rate=0.1",
        config.sgd().momentum(), configured_rate);
  }
  const bool adam = config.has_adam() || config.has_adamw();
  if (!adam || config.learning_rate() <= kMostOfAnyAdam) return "";
  return fmt::format(
      "{} at a learning rate of {:.3g} moves each weight by about that in every step; was the rate "
      "meant for another rule? Try --set optim.learning_rate=0.001",
      config.has_adam() ? "adam" : "adamw", config.learning_rate());
}

}  // namespace ringtail
