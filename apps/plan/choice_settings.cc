#include "apps/plan/choice_settings.h"

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "apps/config/class_outputs.h"
#include "apps/config/config_check.h"
#include "apps/config/run_config.h"
#include "apps/config/shipped_configs.h"
#include "apps/plan/dropped_ways.h"
#include "core/check.h"
#include "core/config/config_override.h"
#include "core/config/written_defaults.h"
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

const CompressionConfig* FindScheme(const PlannerFacts& facts, const std::string& name) {
  const auto scheme = std::ranges::find(facts.scheme(), name, &SchemeFacts::name);
  return scheme == facts.scheme().end() ? nullptr : &scheme->compression();
}

void AddCompression(const Choice& choice, const PlannerFacts& facts, Settings* settings) {
  const CompressionConfig* const scheme = FindScheme(facts, choice.scheme);
  if (scheme == nullptr) return;
  CompressionConfig compression = *scheme;
  const bool rounds = choice.period > 1;
  if (rounds) compression.clear_statistics_every_steps();  // they travel at the end of each
  settings->push_back(fmt::format("dist.{}compression={{ {} }}", rounds ? "local." : "",
                                  compression.ShortDebugString()));
}

// What the config has and the choice does without.
void AddWhatIsDropped(const Choice& choice, const PlannerFacts& facts, const RunConfig& config,
                      Settings* settings) {
  const CompressionConfig* const of_steps =
      choice.period == 1 ? FindScheme(facts, choice.scheme) : nullptr;
  const KeptWays kept = {.rounds = choice.period > 1,
                         .compression = of_steps != nullptr,
                         .momentum = of_steps != nullptr && FindDgc(*of_steps) != nullptr,
                         .divided_layers = choice.divided};
  for (std::string& setting : SettingsWithoutOtherWays(config, kept)) {
    settings->push_back(std::move(setting));
  }
}

// The layers of a network, for as many classes as any other is compared with.
NetConfig LayersOf(const NetConfig& net) {
  constexpr int kClasses = 2;
  RunConfig config;
  *config.mutable_net() = net;
  const auto fitted = FitOutputsToClasses(kClasses, {}, &config);
  RT_CHECK(fitted.ok(), fitted.status().message());
  config.mutable_net()->clear_name();
  config.mutable_net()->clear_convolution();  // how they are computed, and not what
  WriteOutDefaults(config.mutable_net());
  return config.net();
}

// The label of a network says nothing: an edited copy of its config still has it.
bool IsDefaultNet(const NetConfig& net) {
  using google::protobuf::util::MessageDifferencer;
  const ShippedConfig* const shipped = FindShippedConfig(kDefaultConfig);
  RT_CHECK(shipped != nullptr, "the default config is built in");
  const auto loaded = ParseRunConfig(shipped->text, ShippedFileName(*shipped), {});
  RT_CHECK(loaded.ok(), loaded.status().message());
  return MessageDifferencer::Equals(LayersOf(net), LayersOf(loaded->config.net()));
}

// Parts are then no larger than those that were planned: a rank has the memory for them. Images of a side
// that cannot be computed in parts had one.
int64_t PartsOfAll(const TrainConfig& planned, int ranks, int64_t batch, const RunConfig& config) {
  return MayAccumulate(config) ? EqualParts(batch, int64_t{ranks} * planned.accumulation()) : 1;
}

// `set`: what a plan for `ranks` ranks has set. A batch that is another one was set since then, and
// stays.
void UndoBatch(const RunConfig& set, int ranks, RunConfig* config) {
  const TrainConfig& planned = set.train();
  TrainConfig* const train = config->mutable_train();
  if (!planned.has_batch() || train->batch() != planned.batch()) return;
  // SettingsOf has kept the config's there, unless it had a reference of its own.
  const int64_t reference = set.optim().batch_scaling().reference_batch();
  const int64_t batch = reference > 0 ? reference : int64_t{ranks} * planned.batch();
  train->set_batch(static_cast<int>(std::min<int64_t>(batch, std::numeric_limits<int>::max())));
  BatchScalingConfig* const scaling = config->mutable_optim()->mutable_batch_scaling();
  if (reference > 0 && scaling->reference_batch() == reference) scaling->clear_reference_batch();
  if (!planned.has_accumulation() || train->accumulation() != planned.accumulation()) return;
  train->set_accumulation(static_cast<int>(PartsOfAll(planned, ranks, train->batch(), *config)));
}

}  // namespace

int64_t EqualParts(int64_t batch, int64_t fewest) {
  int64_t parts = std::clamp<int64_t>(fewest, 1, batch);
  while (batch % parts != 0) ++parts;
  return parts;
}

int64_t BatchOfRank(const Prediction& choice) {
  const auto ranks = static_cast<int64_t>(choice.ranks);
  return RoundUp(CeilDivide(choice.choice.global_batch, ranks), choice.parts);  // equal parts
}

TrainedNet TrainedNetOf(const RunConfig& config) {
  return {.is_default = IsDefaultNet(config.net()), .by_muon = config.optim().has_muon()};
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
  AddWhatIsDropped(how, facts, config, &settings);
  if (how.period > 1) {
    settings.push_back(fmt::format("dist.local.period={}", how.period));
    settings.push_back(fmt::format("dist.local.overlap={}", how.overlap));
  }
  if (how.divided) settings.push_back("dist.model_parallel.linear=AUTO");
  AddCompression(how, facts, &settings);
  return settings;
}

StatusOr<RunConfig> WithoutPlan(RunConfig config) {
  const Planned plan = config.dist().planned();
  RunConfig set;
  for (const std::string& setting : plan.set()) {
    RT_RETURN_IF_ERROR(ApplyOverride(setting, &set, nullptr).Annotate("dist.planned"));
  }
  UndoBatch(set, plan.rank_size(), &config);
  DistConfig* const dist = config.mutable_dist();
  dist->clear_planned();
  // What AUTO chooses is not set before (dist/config_check.h): so these were not.
  if (set.dist().has_local()) dist->clear_local();
  if (set.dist().has_compression()) dist->clear_compression();
  if (set.dist().model_parallel().has_linear()) dist->mutable_model_parallel()->clear_linear();
  return config;
}

}  // namespace ringtail
