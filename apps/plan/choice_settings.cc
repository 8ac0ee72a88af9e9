#include "apps/plan/choice_settings.h"

#include <fmt/format.h>

#include "core/round.h"
#include "dist/compression/scheme_choice.h"
#include "dist/config_check.h"
#include "dist/gradients/gradient_buckets.h"
#include "optim/optimizer.h"

namespace ringtail {
namespace {

constexpr int64_t kKib = 1024;

using Settings = std::vector<std::string>;

void AddBatch(const Prediction& choice, const RunConfig& config, Settings* settings) {
  settings->push_back(fmt::format("train.batch={}", BatchOfRank(choice)));
  settings->push_back(fmt::format("train.accumulation={}", choice.parts));
  // The rate was found with the batch that the config states.
  if (config.optim().batch_scaling().reference_batch() == 0) {
    settings->push_back(
        fmt::format("optim.batch_scaling.reference_batch={}", config.train().batch()));
  }
}

void AddAllreduce(const Choice& choice, const DistConfig& config, Settings* settings) {
  if (choice.algorithm != config.algorithm()) {
    settings->push_back(fmt::format("dist.algorithm=\"{}\"", choice.algorithm));
  }
  const BucketOptions buckets = BucketsOf(config);
  if (choice.buckets.bytes != buckets.bytes) {
    settings->push_back(fmt::format("dist.bucket_kib={}", choice.buckets.bytes / kKib));
  }
  if (choice.buckets.end_bytes != buckets.end_bytes) {
    settings->push_back(fmt::format("dist.end_bucket_kib={}", choice.buckets.end_bytes / kKib));
  }
}

void AddCompression(const Choice& choice, const PlannerFacts& facts, Settings* settings) {
  for (const SchemeFacts& scheme : facts.scheme()) {
    if (scheme.name() != choice.scheme) continue;
    settings->push_back(fmt::format("dist.{}compression={{ {} }}",
                                    choice.period > 1 ? "local." : "",
                                    scheme.compression().ShortDebugString()));
  }
}

// What the config has and the choice does without.
void AddWhatIsDropped(const Choice& choice, const DistConfig& config, Settings* settings) {
  if (choice.period == 1 && UsesLocalRounds(config)) settings->push_back("dist.local={}");
  const bool codes_steps = choice.period == 1 && choice.scheme != kDenseScheme;
  if (!codes_steps && CompressesAnything(config.compression())) {
    settings->push_back("dist.compression={}");
  }
}

}  // namespace

int64_t BatchOfRank(const Prediction& choice) {
  const auto ranks = static_cast<int64_t>(choice.ranks);
  return RoundUp(CeilDivide(choice.choice.global_batch, ranks), choice.parts);  // equal parts
}

TrainedNet TrainedNetOf(const RunConfig& config) {
  return {.name = config.net().name(), .by_muon = config.optim().has_muon()};
}

SearchSpace SpaceOf(const RunConfig& config) {
  SearchSpace space = ShownSpace(TrainedNetOf(config), config.train().batch());
  space.divided = Optimizer::UpdatesElementwise(config.optim());
  space.buckets = {BucketsOf(config.dist())};
  space.algorithms = {config.dist().algorithm()};
  return space;
}

Settings SettingsOf(const Prediction& choice, const PlannerFacts& facts, const RunConfig& config) {
  Settings settings;
  AddBatch(choice, config, &settings);
  if (choice.ranks <= 1) return settings;
  const Choice& how = choice.choice;
  AddAllreduce(how, config.dist(), &settings);
  AddWhatIsDropped(how, config.dist(), &settings);
  if (how.period > 1) {
    settings.push_back(fmt::format("dist.local.period={}", how.period));
    settings.push_back(fmt::format("dist.local.overlap={}", how.overlap));
  }
  if (how.divided) settings.push_back("dist.model_parallel.linear=AUTO");
  AddCompression(how, facts, &settings);
  return settings;
}

}  // namespace ringtail
