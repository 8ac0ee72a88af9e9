#include "apps/plan/measure_facts.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/config/config_check.h"
#include "apps/plan/measure_loading.h"
#include "apps/plan/measure_scheme.h"
#include "apps/plan/measure_step.h"
#include "apps/plan/measure_update.h"
#include "apps/trainer/local/local_round.h"
#include "apps/trainer/update/accumulated_gradients.h"
#include "core/machine/thread_budget.h"
#include "core/median.h"
#include "core/parallel_for.h"
#include "core/stopwatch.h"
#include "dist/compression/scheme_choice.h"
#include "dist/config_check.h"
#include "optim/optimizer.h"

namespace ringtail {
namespace {

constexpr double kOuterMomentum = 0.6, kOuterRate = 0.7;
constexpr int64_t kStepsOfFurtherSizes = 3;

// The schemes that a plan compares, beside dense and the config's own.
struct NamedScheme {
  const char* name;
  const char* compression;
};
constexpr NamedScheme kSchemes[] = {
    {"bf16", "scheme { bf16 {} }"},
    {"linear8", "scheme { linear8 {} }"},
    {"qsgd4", "scheme { qsgd { levels: 7 } }"},
    {"two_bit", "scheme { two_bit {} }"},
    // Of sums, which have more to send, twice as much. Small layers, which would else be most of what
    // travels, in 8 bits. All layers are coded and take one route, so that a bucket is one exchange:
    // messages cost more than their few bytes. A guard of every hundredth step would send 80 kB a step.
    {"top_k 1%",
     "scheme { top_k { density: 0.01 sum_density: 0.02 values: LEVELS8 } } min_elements: 1 "
     "fall_back: false route: SHARDED statistics_every_steps: 4 guard_every_steps: 1000 "
     "rule { kind: VECTOR scheme { bf16 {} } } "
     "rule { max_elements: 9999 scheme { linear8 {} } }"},
    {"top_k 0.1%",
     "scheme { top_k { density: 0.001 values: BF16 } } min_elements: 1000 "
     "rule { max_elements: 9999 scheme { linear8 {} } }"},
    {"power_sgd", "scheme { power_sgd {} }"},
    {"hylo", "scheme { hylo {} }"}};

ParameterFacts::Kind KindOf(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::kConvolutionWeight:
      return ParameterFacts::CONVOLUTION_WEIGHT;
    case ParameterKind::kLinearWeight:
      return ParameterFacts::LINEAR_WEIGHT;
    case ParameterKind::kVector:
      break;
  }
  return ParameterFacts::VECTOR;
}

template <typename Run>
double MedianSeconds(int64_t runs, const Run& run) {
  std::vector<double> seconds;
  for (int64_t i = -1; i < runs; ++i) {
    const Stopwatch watch;
    run();
    if (i >= 0) seconds.push_back(watch.Seconds());
  }
  return Median(std::move(seconds));
}

// What the end of a round takes beside its exchange: taking what was changed, merging, and showing what
// is common. Of weights that have not changed, which takes as long.
StatusOr<double> MeasureMerge(const LocalConfig& config, ParameterArena* arena, int64_t runs) {
  RT_ASSIGN_OR_RETURN(
      const auto round,
      LocalRound::Create(arena, {.learning_rate = kOuterRate, .momentum = kOuterMomentum},
                         config.overlap()));
  int64_t number = 0;
  return MedianSeconds(runs, [&] {
    round->Take(1);
    round->Merge(number++, 1, UpdateOfStep::kLearningRate);
    round->Swap();
    round->Swap();
  });
}

// Of one part more in a step: its gradients are copied, and added to those of the next one. A mean, as
// it may be shorter than the period of a limit on the processor.
double MeasureAccumulation(const ParameterArena& arena, int64_t runs) {
  AccumulatedGradients gradients(arena, /*several=*/true);
  Stopwatch watch;
  for (int64_t i = -1; i < runs; ++i) {
    if (i == 0) watch.Restart();
    for (const bool first : {true, false}) {
      for (const Parameter& parameter : arena.parameters()) gradients.Add(parameter, first, !first);
    }
  }
  return watch.Seconds() / static_cast<double>(runs);
}

// What this run exchanges is compressed with.
void MeasureOwnSchemes(const DistConfig& config, const ParameterArena& arena, PlannerFacts* facts) {
  const auto add = [&](const char* name, const CompressionConfig& own) {
    if (CompressesAnything(own)) *facts->add_scheme() = MeasureScheme(name, own, arena);
  };
  const bool rounds = UsesLocalRounds(config);
  if (rounds) add(kOwnScheme, config.local().compression());
  add(rounds ? kOwnSchemeBeforeRounds : kOwnScheme, config.compression());
}

Status MeasureSchemes(const DistConfig& config, const std::vector<std::string>& names,
                      const ParameterArena& arena, PlannerFacts* facts) {
  MeasureOwnSchemes(config, arena, facts);
  for (const NamedScheme& scheme : kSchemes) {
    if (std::ranges::find(names, scheme.name) == names.end()) continue;
    CompressionConfig compression;
    RT_RETURN_IF_ERROR(ParseTextConfig(scheme.compression, scheme.name, &compression, nullptr));
    *facts->add_scheme() = MeasureScheme(scheme.name, compression, arena);
  }
  return OkStatus();
}

// Of each batch norm the arena has a running mean and a running variance.
void AddSynchronizedNorms(const RunConfig& config, const ParameterArena& arena,
                          PlannerFacts* facts) {
  if (!config.dist().sync_batch_norm()) return;
  for (size_t i = 0; i < arena.buffers().size(); i += 2) {
    facts->add_synchronized_channels(arena.buffers()[i].elements);
  }
}

// Ascending: the largest, a half, a quarter and so on.
std::vector<int64_t> BatchesOf(const MeasureFactsOptions& options) {
  std::vector<int64_t> batches;
  for (int shift = options.fractions - 1; shift >= 0; --shift) {
    const int64_t batch = options.largest_batch >> shift;
    if (batch > (batches.empty() ? 0 : batches.back())) batches.push_back(batch);
  }
  return batches;
}

// Steps alone: what else there is to know does not depend on the images' size.
Status MeasureFurtherSizes(Model* model, const RunConfig& config, MeasureFactsOptions options,
                           UpdateOfStep* weights, PlannerFacts* facts) {
  options.steps = std::min(options.steps, kStepsOfFurtherSizes);
  options.deviation = {};  // of so few steps it would be too small
  for (size_t i = 1; i < options.sizes.size(); ++i) {
    SizeFacts* const size = facts->add_further_size();
    size->set_image_size(options.sizes[i].image_size);
    size->set_share(options.sizes[i].share);
    for (const int64_t batch : BatchesOf(options)) {
      RT_ASSIGN_OR_RETURN(MeasuredStep step,
                          MeasureStep(model, config, batch, size->image_size(), options, weights));
      *size->add_step() = std::move(step.facts);
    }
  }
  return OkStatus();
}

// What loading images takes, if there are any.
Status AddLoading(const RunConfig& config, const MeasureFactsOptions& options,
                  PlannerFacts* facts) {
  if (options.data == nullptr) return OkStatus();
  const auto measure = [&](int64_t image_size) {
    return MeasureLoading(config, *options.data, image_size, options.ranks_here);
  };
  RT_ASSIGN_OR_RETURN(const LoadingCost cost, measure(facts->image_size()));
  facts->set_load_cpu_s(cost.load_s);
  facts->set_decode_cpu_s(cost.decode_s);
  facts->set_cached_share(cost.cached_share);
  for (SizeFacts& size : *facts->mutable_further_size()) {
    RT_ASSIGN_OR_RETURN(const LoadingCost of_size, measure(size.image_size()));
    size.set_load_cpu_s(of_size.load_s);
    size.set_decode_cpu_s(of_size.decode_s);
  }
  facts->set_epochs(config.train().epochs());
  facts->set_shards(config.data().shards());
  return OkStatus();
}

}  // namespace

std::vector<std::string> MeasureFactsOptions::AllSchemes() {
  std::vector<std::string> names;
  for (const NamedScheme& scheme : kSchemes) names.emplace_back(scheme.name);
  return names;
}

double CoresOfThisRank() {
  return std::min(static_cast<double>(NumComputeThreads()), CgroupQuota());
}

StatusOr<PlannerFacts> MeasureFacts(const LoadedConfig& loaded,
                                    const MeasureFactsOptions& options) {
  RT_ASSIGN_OR_RETURN(const auto model,
                      CreateModel(loaded, /*allocate=*/true, /*freeze=*/options.frozen));
  model->Initialize(loaded.config.train().seed());
  PlannerFacts facts;
  facts.set_net(loaded.config.net().name());
  facts.set_cores(CoresOfThisRank());
  ParameterArena& arena = model->arena();
  facts.set_buffer_elements(static_cast<int64_t>(arena.buffer_values().size()));
  facts.set_whole_steps(!MayAccumulate(loaded.config));
  AddSynchronizedNorms(loaded.config, arena, &facts);
  for (const Parameter& parameter : arena.parameters()) {
    ParameterFacts* const known = facts.add_parameter();
    known->set_name(parameter.spec.name);
    known->set_kind(KindOf(parameter.spec.kind));
    for (const int64_t dimension : parameter.spec.shape) known->add_dimension(dimension);
  }
  RT_ASSIGN_OR_RETURN(const auto optimizer, Optimizer::Create(loaded.config.optim(), &arena));
  UpdateOfStep weights(loaded.config.optim(), optimizer.get(), &arena);
  UpdateParts parts;
  const int64_t first_size = options.sizes.front().image_size;
  for (const int64_t batch : BatchesOf(options)) {
    RT_ASSIGN_OR_RETURN(MeasuredStep step, MeasureStep(model.get(), loaded.config, batch,
                                                       first_size, options, &weights));
    *facts.add_step() = std::move(step.facts);
    facts.set_update_s(step.update_s);  // of the largest batch at last
    parts = step.parts;
    facts.set_step_deviation(step.deviation);
    facts.set_wake_delay_s(step.wake_delay_s);
    facts.set_elementwise_update(Optimizer::UpdatesElementwise(loaded.config.optim()));
  }
  facts.set_image_size(first_size);
  RT_RETURN_IF_ERROR(MeasureFurtherSizes(model.get(), loaded.config, options, &weights, &facts));
  const MeasuredUpdate update{.grad_scale = 1 / static_cast<double>(options.largest_batch),
                              .optimizer_s = parts.optimizer_s,
                              .first_step = kWarmUpSteps + options.steps,
                              .runs = options.steps};
  const Preparation prepared = MeasurePreparation(loaded.config.optim(), update, optimizer.get());
  facts.mutable_prepare_s()->Assign(prepared.seconds.begin(), prepared.seconds.end());
  facts.set_preparing_s(prepared.longer_s);
  facts.set_norm_s(parts.norm_s);
  facts.set_average_s(parts.average_s);
  if (options.fractions > 1) facts.set_accumulate_s(MeasureAccumulation(arena, options.steps));
  RT_ASSIGN_OR_RETURN(const double merge,
                      MeasureMerge(loaded.config.dist().local(), &arena, options.steps));
  facts.set_merge_s(merge);
  RT_RETURN_IF_ERROR(AddLoading(loaded.config, options, &facts));
  RT_RETURN_IF_ERROR(MeasureSchemes(loaded.config.dist(), options.schemes, arena, &facts));
  return facts;
}

}  // namespace ringtail
